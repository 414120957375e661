import { refusedBranchNotes } from '../../app/fleet/branches.ts';
import { missingParts } from '../../app/fleet/missing-parts.ts';
import { FEWEST_PROJECTS_KEPT, type FleetReading, readFleet } from '../../app/fleet/read-fleet.ts';
import { addOperations, loggedOperation, readOperations } from '../../app/fleet/read-operations.ts';
import { type PastCompute, pastOfComputes } from '../../app/recommend/facts.ts';
import { projectsInUse } from '../../app/situation/fleet-usage.ts';
import { noteOf } from '../../app/situation/read-situation.ts';
import { readPeriods, readPlans } from '../../app/usage/project-periods.ts';
import type { Reading } from '../../compose/reading.ts';
import { readUsageOfProjects } from '../../compose/situation.ts';
import { createOperationLog, type OperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import type { UsageSeries } from '../../domain/usage/usage.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import type { PastFlags } from '../flags.ts';
import { withReading } from '../read-fleet.ts';
import { untilInterrupted } from '../signals.ts';
import { countInUnit, readUsageCsv } from '../usage/usage-csv.ts';
import { readOperationsFile } from './operations-file.ts';
import { openJournal, type PagesJournal } from './pages-journal.ts';
import { type Progress, withProgress } from './progress.ts';

export interface FleetPast {
  /** The beginning of the past that is read, milliseconds since the epoch. */
  fromMs: number;
  toMs: number;
  computes: PastCompute[];
  /** One line for each part of the fleet that could not be read. */
  missing: string[];
  /** Projects whose operations could not be read to the end because of an error. */
  unread: ReadonlySet<string>;
  /** Notes about the data that the user must know, one line each. */
  notes: string[];
}

type Periods = Awaited<ReturnType<typeof readPeriods>>['periods'];

/** Billing periods are not read if more projects than this lack hourly usage, since each takes a request. */
const MAX_PERIODS = 50;

interface PastSources {
  fleet: FleetReading;
  log: OperationLog;
  toMs: number;
  usage: readonly UsageSeries[];
  /** The plans that usage or projects have shown, by account. A plan in the settings takes precedence. */
  plans: ReadonlyMap<string, AccountPlan>;
  periods?: Periods | undefined;
  errors: readonly string[];
  notes: readonly string[];
  unread?: ReadonlySet<string>;
  /** When the stored operations of a project were read, milliseconds since the epoch. */
  storedAtMs?: ReadonlyMap<string, number>;
}

interface ReadOptions {
  settings: Settings;
  flags: Pick<PastFlags, 'days' | 'operations' | 'usage' | 'live'>;
  /** Reads names and roles of branches, too; without effect on a `fleet` that was already read. */
  readBranches?: boolean;
  /** The fleet, if it was already read. */
  fleet?: FleetReading | undefined;
  /** The usage of projects in their billing periods, if it was already read. */
  periods?: Periods | undefined;
  /** Reads these projects alone; all by default. */
  projectIds?: ReadonlySet<string> | undefined;
  /** Leaves usage out, so that nothing has a price. */
  withoutUsage?: boolean;
  /** The most pages of operations that are read for each project; by default all within the days. */
  maxPages?: number | undefined;
  /** Called with the past as known after the newest page of each project; not if there are no older pages, unless `maxPages` is 1. */
  onNewest?: ((past: FleetPast) => Promise<void>) | undefined;
}

/** Reads the past of the fleet from the API or from files, and wakes no compute. Throws a UserError if nothing can be read. */
export async function readPast(
  settings: Settings,
  flags: PastFlags,
  options: Pick<
    ReadOptions,
    'readBranches' | 'fleet' | 'periods' | 'projectIds' | 'maxPages' | 'onNewest' | 'withoutUsage'
  >,
): Promise<FleetPast> {
  const { operations, fleet, live, days } = flags;
  if (operations === undefined && fleet !== undefined) throw new UserError('--fleet needs --operations; give both');
  if (operations !== undefined && fleet === undefined) {
    throw new UserError(
      '--operations needs --fleet, a snapshot with the settings of the computes: ebb snapshot --out fleet.yaml',
    );
  }
  const operationsSinceMs = Date.now() - days * DAY_MS;
  return withReading({ settings, fleetFile: fleet, live, operationsSinceMs }, async (reading) => {
    const read = operations === undefined ? readLive : readFiles;
    const sources = await read(reading, { settings, flags, ...options });
    const fromMs = sources.toMs - days * DAY_MS;
    const countOf = countInUnit(sources.fleet.computes);
    const usage = flags.usage === undefined ? sources.usage : await readUsageCsv(flags.usage, countOf);
    return pastOf({ settings, sources, usage, fromMs });
  });
}

async function readFiles(reading: Reading, { flags: { operations = '' } }: ReadOptions): Promise<PastSources> {
  const log = await readOperationsFile(operations);
  const fleet = await readFleet({ api: reading.api, readBranches: true });
  const toMs = Math.max(log.newestMs ?? 0, reading.takenAtMs ?? 0);
  const inFleet = new Set(fleet.projects.map(({ projectId }) => projectId));
  const others = log.projects.filter(({ projectId }) => !inFleet.has(projectId)).length;
  const notes = others === 0 ? [] : [`${others} projects of ${operations} are not in the fleet file: left out`];
  return { fleet, log, toMs, usage: [], plans: new Map(), errors: fleet.errors.map(reading.explain), notes };
}

/** Reads the newest operations of each project first. After an interrupt the command shows what was read. */
function readLive(reading: Reading, options: ReadOptions): Promise<PastSources> {
  return untilInterrupted((signal) =>
    withProgress((progress) => readWithProgress(reading, options, { progress, signal })),
  );
}

async function readWithProgress(
  reading: Reading,
  options: ReadOptions,
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<PastSources> {
  const { settings, readBranches = false, maxPages, onNewest, periods, projectIds } = options;
  const { days } = options.flags;
  const { api } = reading;
  const fleet =
    options.fleet ?? (await readFleet({ api, readBranches, onProgress: progress.fleet, signal, projectIds }));
  const log = createOperationLog();
  const { toMs, journal, notes } = await resumeReading(log, {
    settings,
    days,
    readsEverything: !maxPages && !projectIds,
    readsAgain: options.flags.live === true || fleet.projects.length < FEWEST_PROJECTS_KEPT,
  });
  const fromMs = toMs - days * DAY_MS;
  const storedAtMs = new Map<string, number>();
  for (const [projectId, { cursor }] of journal?.states ?? [])
    if (cursor === undefined) log.project(projectId).coverFrom(fromMs);
  // Usage has a rate limit of its own, so it is read at the same time. It also tells the plan, on which proposals depend.
  const measuring = readUsage(reading, options, fleet, toMs);
  const tellNewest = async () => {
    progress.end();
    // Reading hourly usage takes a minute, which is not awaited if billing periods tell the usage and the plans.
    const measured = periods ? { usage: [], plans: new Map(), periods, notes: [] } : await measuring;
    const sources = { fleet, log, toMs, ...measured, errors: [], storedAtMs };
    await onNewest?.(pastOf({ settings, sources, usage: measured.usage, fromMs }));
  };
  const operations = readOperations({
    api,
    projects: projectsInUse(fleet),
    sinceMs: fromMs,
    nowMs: toMs,
    signal,
    onProgress: progress.operations,
    ...(maxPages !== undefined && { maxPages }),
    ...(journal && { resume: journal.states }),
    monotonicMs: () => performance.now(),
    onNewest: tellNewest,
    onPage(projectId, operations, complete, state) {
      addOperations(log.project(projectId), operations);
      const { storedAtMs: readAtMs = toMs } = state;
      if (complete) log.project(projectId).coverFrom(readAtMs - days * DAY_MS);
      if (state.storedAtMs !== undefined) storedAtMs.set(projectId, readAtMs);
      else journal?.add({ projectId, state, operations: operations.map(loggedOperation) });
    },
  });
  const readAndTold = operations.then(async (read) => {
    // If only the newest page is wanted, `readOperations` has no older ones to read, and does not call `onNewest`.
    if (maxPages === 1) await tellNewest();
    return read;
  });
  const [read, measured] = await Promise.all([readAndTold, measuring]);
  const errors = [...fleet.errors, ...read.errors];
  const cut = [...read.states.values()].filter(({ read: state }) => state === 'in part').length;
  if (signal.aborted) {
    notes.push(`interrupted: for ${cut} projects only a part of the time is known; the next run continues from here`);
  } else if (!read.errors.some(({ code }) => code === 'unavailable' || code === 'timeout')) journal?.end();
  notes.unshift(...noteOf(reading));
  notes.push(...measured.notes);
  const unread = new Set([...read.states].flatMap(([id, { read: state }]) => (state === 'failed' ? [id] : [])));
  const missing = missingParts(errors, { ...reading, projects: [...fleet.projects, ...fleet.unread] });
  return { fleet, log, toMs, ...measured, storedAtMs, unread, errors: missing, notes };
}

/** If this run reads everything, adds to the log the pages that an earlier run has read. The log then ends when the earlier run began. */
async function resumeReading(
  log: OperationLog,
  options: { settings: Settings; days: number; readsEverything: boolean; readsAgain: boolean },
): Promise<{ toMs: number; journal?: PagesJournal; notes: string[] }> {
  const { settings, days, readsEverything, readsAgain } = options;
  const nowMs = Date.now();
  if (!readsEverything) return { toMs: nowMs, notes: [] };
  const journal = await openJournal({
    folder: settings.stateDir,
    asked: { apiUrl: settings.apiUrl, group: settings.group, days },
    nowMs,
    readsAgain,
    onPage: ({ projectId, operations }) => addOperations(log.project(projectId), operations),
  });
  const { earlierToMs: toMs = nowMs } = journal;
  const since = `operations until ${isoInstant(toMs)} were read before and are not read again; newer ones are missing`;
  return { toMs, journal, notes: toMs === nowMs ? [] : [since] };
}

/**
 * Reads the usage that daemons have collected, otherwise the usage in the control API. For a few projects without hourly usage it reads the
 * usage of their billing periods. Without usage no size or window can be proposed.
 */
async function readUsage(
  { api, isStored = false }: Reading,
  { settings, flags, withoutUsage, periods: knownPeriods }: ReadOptions,
  { projects, computes }: FleetReading,
  nowMs: number,
): Promise<Pick<PastSources, 'usage' | 'plans' | 'periods' | 'notes'>> {
  if (flags.usage !== undefined || withoutUsage) return { usage: [], plans: new Map(), notes: [] };
  const asked = { settings, live: flags.live, projects, computes, nowMs, mayAskPlans: isStored };
  const { usages, missing, plans: plansInUsage } = await readUsageOfProjects(asked);
  const usage = usages.flatMap(({ series }) => series);
  const found = { usage, notes: missing };
  if (isStored) return { ...found, plans: plansInUsage };
  const measured = new Set(usage.map(({ projectId }) => projectId));
  const others = projects.filter(({ projectId }) => !measured.has(projectId));
  const areFew = others.length <= MAX_PERIODS;
  const periods = knownPeriods ?? (areFew ? (await readPeriods({ api, projects: others })).periods : undefined);
  const plans = new Map(plansInUsage);
  for (const { projectId, account } of projects) {
    const plan = periods?.get(projectId)?.plan;
    if (plan !== undefined && !plans.has(account)) plans.set(account, plan);
  }
  const isKnown = (account: string) => plans.has(account) || accountFor(settings.accounts, account)?.plan !== undefined;
  const read = await readPlans({ api, projects, isKnown });
  return { ...found, periods, plans: new Map([...plans, ...read]) };
}

function pastOf(options: {
  settings: Settings;
  sources: PastSources;
  usage: readonly UsageSeries[];
  fromMs: number;
}): FleetPast {
  const { settings, usage, fromMs } = options;
  const { fleet, log, toMs, errors, notes, storedAtMs, periods, unread = new Set() } = options.sources;
  const [first] = errors;
  if (first !== undefined && fleet.projects.length === 0) throw new UserError(first);
  const pricing = (compute: Compute) => pricingOf(settings, compute, options.sources);
  const input = { computes: fleet.computes, log, usage, fromMs, toMs, pricing };
  const computes = pastOfComputes({ ...input, ...(storedAtMs && { storedAtMs }), ...(periods && { periods }) });
  const allNotes = [...notes, ...refusedBranchNotes(fleet.branchNamesRefused)];
  return { fromMs, toMs, computes, missing: [...errors], unread, notes: allNotes };
}

/** A note about accounts with an unknown plan, whose computes get no other timeout proposed, since the plan may not allow it. */
export function planNotes({ computes }: Pick<FleetPast, 'computes'>): string[] {
  const accounts = new Set(computes.flatMap(({ compute, plan }) => (plan === undefined ? [compute.account] : [])));
  if (accounts.size === 0) return [];
  const unknown = `the plan of ${accounts.size === 1 ? 'account' : 'accounts'} ${[...accounts].join(', ')} is not known`;
  return [`${unknown}: no price, and no timeout that only Scale allows, is shown; write plan: in ebb.yaml`];
}

function pricingOf(
  { accounts, prices }: Settings,
  { account, projectId }: Compute,
  { plans, periods }: Pick<PastSources, 'plans' | 'periods'>,
): Pick<PastCompute, 'plan' | 'price'> {
  // Usage shows a new plan later than the project does.
  const plan = accountFor(accounts, account)?.plan ?? periods?.get(projectId)?.plan ?? plans.get(account);
  return plan === undefined ? {} : { plan, price: prices[plan] };
}
