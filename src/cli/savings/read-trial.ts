import type { FleetUsage } from '../../app/situation/fleet-usage.ts';
import { type Undo, undosBetween } from '../../app/situation/stored-source.ts';
import type { KeptTrial } from '../../app/usage/trial-days.ts';
import { readFact, readFleetUsage } from '../../compose/situation.ts';
import { awakeHistory } from '../../domain/awake/intervals.ts';
import type { OperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { unitOf, usageUnitOf } from '../../domain/decide/control-group.ts';
import { measuredUnit } from '../../domain/evaluate/trials.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { TrialPolicy } from '../../domain/policy/kinds/trial.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { AT_ANY_AGE } from '../../domain/policy/select.ts';
import type { Compliance } from '../../domain/records/compute-record.ts';
import { localDayAt } from '../../domain/time/windows/local-time.ts';
import { trialSpan } from '../../domain/trial/assignment.ts';
import type { TrialUnit } from '../../domain/trial/savings.ts';
import { type UsageSeries, type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { type FilterFlags, filtered, filtersByBranch } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';
import { groupAlike } from '../group-alike.ts';
import { AS_UNCHANGED, notPlannedNotes } from '../not-planned.ts';
import { settingsAndPolicies } from '../or-fail.ts';
import { readOperationsFile } from '../past/operations-file.ts';
import { withProgress } from '../past/progress.ts';
import { readForecastStart } from '../read-fleet.ts';
import { countInUnit, readUsageCsv } from '../usage/usage-csv.ts';

export interface SavingsFlags extends CommonFlags, FilterFlags {
  trial?: string;
  by?: 'owner';
  from?: string;
  to?: string;
  design?: boolean;
}

export interface TrialRead {
  trial: TrialPolicy;
  policies: CompiledPolicies;
  computes: Compute[];
  units: TrialUnit[];
  /** The stored times in which computes had the settings of their arm. */
  kept: Compliance[];
  /** When `stop_if` ended the trial, milliseconds since the epoch. */
  stoppedAtMs: number | undefined;
  nowMs: number;
  /** Changes of policies during the trial; undefined if no daemon has recorded any. */
  policyChanges: FleetUsage['policyChanges'];
  /** The end of the known usage, milliseconds since the epoch; undefined without usage. */
  usedUntilMs: number | undefined;
  /** The lowerings that guards undid during the trial; undefined if no audit could be read, or the fleet is from a file. */
  undos: readonly Undo[] | undefined;
  missing: readonly string[];
  notes: string[];
}

/** Reads the trial that the flags name, from files or from the live fleet and the store. Throws a UserError if there is none. */
export async function readTrial(flags: SavingsFlags): Promise<TrialRead> {
  const { settings, policies: set, broken } = await settingsAndPolicies(flags);
  const trial = findTrial(set.policies, flags.trial);
  if (flags.usage === undefined && flags.fleet !== undefined && !flags.design) {
    throw new UserError('--fleet needs --usage: a snapshot has no usage; give the usage.csv of `ebb usage export`');
  }
  const policies = compilePolicies(set);
  const nowMs = Date.now();
  const selectsByBranch = policies.selectsByBranch || filtersByBranch(flags);
  const start = await readForecastStart(settings, flags, { selectsByBranch, nowMs });
  const index = set.policies.indexOf(trial);
  const wanted = filtered(start.subjects, flags, { settings, policies });
  const subjects = wanted.filter(({ compute }) => policies.selects(index, compute, AT_ANY_AGE));
  const computes = subjects.map(({ compute }) => compute);
  const measured = subjects.map(({ compute }) => usageUnitOf(trial, compute));
  const keptTrial = {
    name: trial.name,
    design: trial.design,
    units: [...new Map(measured.map((unit) => [unitName(unit), unit])).values()],
  };
  const used = flags.usage === undefined ? await readUsage(settings, flags, { nowMs, trial: keptTrial }) : undefined;
  const series = used?.series ?? (await readUsageFile(flags.usage ?? '', computes));
  const log = flags.operations === undefined ? undefined : await readOperationsFile(flags.operations);
  const ownerOf = ownersOf({ rules: settings.owners, policies, computes });
  const trialDays = used?.trialDays ?? new Map();
  const plans = used?.plans ?? new Map();
  const units = unitsOf({ trial, settings, plans, ownerOf, subjects, series, trialDays, log });
  const ends = series
    .flatMap(({ buckets }) => buckets.slice(-1))
    .map(({ startMs, seconds }) => startMs + seconds * 1000);
  const usedUntilMs = ends.length === 0 ? undefined : ends.reduce((latest, ms) => Math.max(latest, ms));
  const missing = [...start.missing, ...(used?.missing ?? [])];
  const records = subjects.flatMap(({ trials }) => trials?.[trial.name] ?? []);
  const kept = records.flatMap((record) => record.kept ?? []);
  const stoppedAtMs = records.find((record) => record.terms === trial.digest && record.stoppedAtMs)?.stoppedAtMs;
  const { facts: undos, notes: undoNotes } = await readUndos(settings, flags, {
    trial,
    policies: set,
    computes,
    nowMs,
  });
  const unread = notPlannedNotes(computes, { policies, broken }, AS_UNCHANGED);
  const notes = [...start.notes, ...undoNotes, ...unread];
  return {
    trial,
    policies,
    computes,
    units,
    kept,
    stoppedAtMs,
    policyChanges: used?.policyChanges,
    nowMs,
    usedUntilMs,
    undos,
    missing,
    notes,
  };
}

/** Reads the lowerings that guards undid during the trial. Without guards there are none; for a fleet from a file they are unknown. */
async function readUndos(
  settings: Settings,
  { fleet }: SavingsFlags,
  { trial, policies, computes, nowMs }: { trial: TrialPolicy; policies: PolicySet; computes: Compute[]; nowMs: number },
): Promise<{ facts?: readonly Undo[]; notes: string[] }> {
  if (policiesOfKind(policies.policies, 'guard').length === 0) return { facts: [], notes: [] };
  if (fleet !== undefined) return { notes: [] };
  const { fromMs, untilMs } = trialSpan(trial.design);
  const { facts, notes } = await readFact(
    settings,
    'undos of guards',
    undosBetween(fromMs, Math.min(untilMs, nowMs)),
    nowMs,
  );
  const ids = new Set(computes.map(({ computeId }) => computeId));
  return { notes, ...(facts && { facts: facts.filter(({ compute_id: id }) => ids.has(id)) }) };
}

function findTrial(policies: readonly Policy[], name: string | undefined): TrialPolicy {
  const trials = policiesOfKind(policies, 'trial');
  const names = trials.map((policy) => policy.name).join(', ');
  if (trials.length === 0) throw new UserError('no policy is of kind trial; docs/savings.md says how to write one');
  const found = name === undefined ? trials : trials.filter((policy) => policy.name === name);
  const [trial, another] = found;
  if (!trial) throw new UserError(`--trial: no trial is named ${name}; there are ${names}`);
  if (another) throw new UserError(`there are several trials; choose one with --trial: ${names}`);
  return trial;
}

/**
 * Reads the usage that daemons keep for the trial, otherwise from the control API the hours of a week, and days in UTC before it. A snapshot
 * has no usage.
 */
async function readUsage(
  settings: Settings,
  { fleet, live }: SavingsFlags,
  { nowMs, trial }: { nowMs: number; trial: KeptTrial },
): Promise<Pick<FleetUsage, 'plans' | 'missing' | 'trialDays' | 'policyChanges'> & { series: UsageSeries[] }> {
  if (fleet !== undefined) return { series: [], plans: new Map(), missing: [], trialDays: new Map() };
  const { usages, ...others } = orFail(
    await withProgress((progress) => readFleetUsage({ settings, live, nowMs, trial, onProgress: progress.fleet })),
  );
  return { ...others, series: usages.flatMap(({ series }) => series) };
}

async function readUsageFile(file: string, computes: readonly Compute[]): Promise<UsageSeries[]> {
  const projectIds = new Set(computes.map(({ projectId }) => projectId));
  const countOf = countInUnit(computes);
  return readUsageCsv(file, (unit) => (projectIds.has(unit.projectId) ? countOf(unit) : undefined));
}

interface UnitFacts {
  trial: TrialPolicy;
  settings: Settings;
  /** The plans that usage has shown, by account. They count for accounts without a plan in the settings. */
  plans: FleetUsage['plans'];
  ownerOf: (unit: UsageUnit) => string;
  subjects: readonly ForecastSubject[];
  series: readonly UsageSeries[];
  trialDays: FleetUsage['trialDays'];
  log: OperationLog | undefined;
}

function unitsOf(facts: UnitFacts): TrialUnit[] {
  const { trial, subjects } = facts;
  const series = new Map(facts.series.map((one) => [unitName(one), one]));
  const groups = groupAlike(subjects, ({ compute }) => unitOf(trial, compute));
  return groups.map(({ shared: unit, members }) => unitOfSubjects(unit, members, facts, series.get(unit)));
}

function unitOfSubjects(
  unit: string,
  subjects: readonly ForecastSubject[],
  { trial, settings, plans, ownerOf, trialDays, log }: UnitFacts,
  series: UsageSeries | undefined,
): TrialUnit {
  const [{ compute }] = subjects as [ForecastSubject, ...ForecastSubject[]];
  const plan = accountFor(settings.accounts, compute.account)?.plan ?? plans.get(compute.account);
  const measured = measuredUnit(trial, {
    compute,
    stored: subjects.flatMap(({ trials }) => trials?.[trial.name] ?? []),
    buckets: series?.buckets ?? [],
    days: trialDays.get(unit) ?? new Map(),
    owner: ownerOf(usageUnitOf(trial, compute)),
    usdPerCuHour: plan === undefined ? undefined : settings.prices[plan],
  });
  return { ...measured, ...(log && { starts: startsOf(log, subjects, trial.design.zone) }) };
}

/** Cold starts by local day, for the days with known operations. */
function startsOf(log: OperationLog, subjects: readonly ForecastSubject[], zone: string): Map<number, number> {
  const starts = new Map<number, number>();
  const project = log.projects.find(({ projectId }) => projectId === subjects[0]?.compute.projectId);
  if (project?.fromMs === undefined || log.newestMs === undefined) return starts;
  const { fromMs } = project;
  const toMs = log.newestMs;
  for (let day = localDayAt(zone, fromMs) + 1; day < localDayAt(zone, toMs); day += 1) starts.set(day, 0);
  for (const { compute } of subjects) {
    const { intervals } = awakeHistory(project.eventsOf(compute.computeId), { fromMs, toMs, present: compute });
    for (const { startMs, start } of intervals) {
      const day = localDayAt(zone, startMs);
      if (start === 'client' && starts.has(day)) starts.set(day, (starts.get(day) ?? 0) + 1);
    }
  }
  return starts;
}
