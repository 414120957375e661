/** Opens what commands read: the fleet, or a snapshot of it, and stored facts. */

import {
  type FleetUsage,
  type FleetUsageOptions,
  fleetUsage,
  plansOf,
  type UsageSources,
  usageOfProjects,
} from '../app/situation/fleet-usage.ts';
import { type PlanOptions, type PlanResult, type PlanRules, planFor } from '../app/situation/plan.ts';
import {
  type FleetSource,
  type ForecastOptions,
  type ForecastStart,
  readForecastStart,
} from '../app/situation/read-situation.ts';
import {
  emptySource,
  FLEET_FACTS,
  type FleetFact,
  type StoredFacts,
  type StoredSource,
  sourceFromDaemon,
  sourceFromStore,
} from '../app/situation/stored-source.ts';
import { thenCleanUp } from '../common/errors.ts';
import type { Result } from '../common/result.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import { DAY_MS } from '../domain/time/units.ts';
import type { Project } from '../ports/control-api.ts';
import type { Engine } from '../ports/engine.ts';
import { accountFor } from '../settings/accounts.ts';
import type { Settings } from '../settings/settings.ts';
import { openForReading, type ReadingOptions, type SharedSource, sharedByDaemon, sharedInStore } from './reading.ts';
import { announcingSlowUsage } from './slow-usage.ts';
import { openStoreToRead } from './store.ts';

/**
 * Calls `work` with the stored facts, from the store, or from the daemon that has an embedded store open. If that daemon knows `compute`, it
 * sends only the records of the compute's project. If an embedded store can't be read, a note says so instead. A snapshot has no facts.
 */
async function withStored<T>(
  options: Pick<PlanningOptions, 'settings' | 'fleetFile' | 'compute'>,
  work: (stored: StoredSource, engine?: Engine) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { settings, fleetFile, compute } = options;
  if (fleetFile !== undefined) return work(emptySource());
  const stored = await openStoreToRead(settings);
  if (!stored.ok) return stored;
  if (!('opened' in stored)) {
    const fromDaemon = stored.daemon && (await sourceFromDaemon(stored.daemon, { compute, now: Date.now }));
    return work(fromDaemon ?? emptySource([stored.note]));
  }
  const { store, engine, close } = stored.opened;
  const { unusedNote } = stored;
  try {
    return await work(sourceFromStore(store, unusedNote === undefined ? [] : [unusedNote]), engine);
  } finally {
    await close();
  }
}

async function withReading<T>(
  options: ReadingOptions,
  work: (source: FleetSource) => Promise<Result<T>>,
): Promise<Result<T>> {
  const opened = await openForReading(options);
  if (!opened.ok) return opened;
  try {
    return await work(opened.value);
  } finally {
    await opened.value.close();
  }
}

interface PlanningOptions extends PlanOptions {
  settings: Settings;
  /** A snapshot to plan for instead of the live fleet. */
  fleetFile?: string | undefined;
  /** Reads the fleet from the control API instead of the readings that daemons have stored. */
  live?: boolean | undefined;
  /** If `project` is absent and the store knows the project of this compute, only this project is planned. */
  compute?: string | undefined;
}

/** Plans once for the fleet, live or in a file. Writes nothing, and makes no store. */
export async function planOnce(options: PlanningOptions): Promise<Result<PlanResult>> {
  const { settings, fleetFile, live, compute, atMs: nowMs = Date.now() } = options;
  return withStored(options, async (stored, engine) => {
    const project = options.project ?? (compute === undefined ? undefined : await stored.projectOf(compute));
    const usesReserve = project !== undefined;
    const subject = options.project ?? compute;
    const reading = { settings, fleetFile, live, subject, shared: stored, nowMs, usesReserve, engine };
    return withReading(reading, (source) =>
      planFor({ ...options, project }, { source, stored, rules: planRulesOf(settings), now: Date.now }),
    );
  });
}

export function planRulesOf(settings: Settings): PlanRules {
  const { disruption, manualChanges, accounts } = settings;
  return {
    disruption,
    manualChanges,
    limits: limitsOf(settings.apiRequestsPerMinute, settings.apiReserve),
    accounts: accounts.map(({ name }) => name),
    accountOf: (account) => accountFor(accounts, account),
  };
}

/** Reads the fleet, live or from a file, for a forecast. Writes nothing, and makes no store. */
export async function readForForecast(
  options: ForecastOptions & Pick<ReadingOptions, 'settings' | 'fleetFile' | 'live'>,
): Promise<Result<ForecastStart>> {
  return withStored(options, (stored, engine) =>
    withReading({ ...options, shared: stored, engine }, (source) => readForecastStart(options, { source, stored })),
  );
}

/**
 * Reads the stored facts of these names only, and opens the store once for all. If they can't be read, a note says why. If nothing is stored yet,
 * there is neither a fact nor a note.
 */
export function readFacts<Name extends keyof typeof FLEET_FACTS>(
  settings: Settings,
  names: readonly Name[],
  nowMs: number,
): Promise<{ facts?: Pick<StoredFacts, Name>; notes: string[] }> {
  const readAll = async (read: (name: Name) => Promise<unknown>) => {
    const found = await Promise.all(names.map(async (name) => [name, await read(name)] as const));
    return Object.fromEntries(found) as Pick<StoredFacts, Name>;
  };
  return readFact<Pick<StoredFacts, Name>>(
    settings,
    names.join(' and '),
    {
      readFromStore: (store, atMs) => readAll((name) => FLEET_FACTS[name].readFromStore(store, atMs)),
      async readFromDaemon(operator) {
        const facts = await readAll((name) => FLEET_FACTS[name].readFromDaemon(operator));
        return Object.values(facts).includes(undefined) ? undefined : facts;
      },
    },
    nowMs,
  );
}

/** Like {@link readFacts}, for one fact that is not among {@link FLEET_FACTS}. Notes call the fact by `name`. */
export async function readFact<Facts>(
  settings: Settings,
  name: string,
  { readFromStore, readFromDaemon }: FleetFact<Facts>,
  nowMs: number,
): Promise<{ facts?: Facts; notes: string[] }> {
  const stored = await openStoreToRead(settings);
  if (stored.ok && 'opened' in stored) {
    const { store, close } = stored.opened;
    try {
      return { facts: await readFromStore(store, nowMs), notes: [] };
    } finally {
      await close();
    }
  }
  const unread = stored.ok ? stored.unread : stored;
  if (!unread) return { notes: [] };
  const facts = stored.ok && stored.daemon && (await readFromDaemon(stored.daemon));
  return facts ? { facts, notes: [] } : { notes: [`${name} are not known: ${unread.problem}`] };
}

/** Reads the fleet and its usage. Wakes no compute and writes nothing. */
export async function readFleetUsage({
  settings,
  live,
  ...options
}: FleetUsageOptions & Pick<ReadingOptions, 'settings' | 'live'>): Promise<Result<FleetUsage>> {
  const { operations, nowMs } = options;
  const operationsSinceMs = operations && nowMs - operations.days * DAY_MS;
  return withUsage({ settings, live, operationsSinceMs }, (sources) => fleetUsage(sources, options));
}

/** Reads the usage of the projects' organizations, and the plans of accounts whose settings have none. */
export async function readUsageOfProjects({
  settings,
  live,
  mayAskPlans,
  ...options
}: Parameters<typeof usageOfProjects>[1] &
  Pick<ReadingOptions, 'settings' | 'live'> & { mayAskPlans: boolean }): Promise<
  Awaited<ReturnType<typeof usageOfProjects>> & { plans: ReadonlyMap<string, AccountPlan> }
> {
  const read = await withUsage({ settings, live, needsFleet: false }, async (sources) => {
    const usage = await usageOfProjects(sources, options);
    const projects = projectsWithoutPlan(settings, options.projects);
    const plans = await plansOf(sources, { projects, mayAsk: mayAskPlans, usages: usage.usages });
    return { ...usage, plans };
  });
  return read.ok ? read.value : { usages: [], missing: [read.problem], plans: new Map() };
}

/** The projects of accounts without a plan in the settings. */
export function projectsWithoutPlan(settings: Settings, projects: readonly Project[]): Project[] {
  return projects.filter(({ account }) => accountFor(settings.accounts, account)?.plan === undefined);
}

/** Opens the sources of usage on first use, and closes them after the work. */
export async function withUsageSources<T>(
  options: UsageOptions,
  work: (open: () => Promise<Result<UsageSources>>) => Promise<T>,
): Promise<T> {
  let opening: ReturnType<typeof openUsage> | undefined;
  try {
    return await work(async () => {
      opening ??= openUsage(options);
      const opened = await opening;
      return opened.ok ? { ok: true, value: opened.value.sources } : opened;
    });
  } finally {
    const opened = await opening;
    if (opened?.ok) await opened.value.close();
  }
}

function withUsage<T>(options: UsageOptions, work: (sources: UsageSources) => Promise<T>): Promise<Result<T>> {
  return withUsageSources<Result<T>>(options, async (open) => {
    const sources = await open();
    return sources.ok ? { ok: true, value: await work(sources.value) } : sources;
  });
}

type UsageOptions = Pick<ReadingOptions, 'settings' | 'live' | 'needsFleet' | 'operationsSinceMs'>;

async function openUsage(options: UsageOptions): Promise<Result<{ sources: UsageSources; close(): Promise<void> }>> {
  const { accounts } = options.settings;
  const opening = await openStoreToRead(options.settings);
  const opened = opening.ok && 'opened' in opening ? opening.opened : undefined;
  const daemon = opening.ok && 'daemon' in opening ? opening.daemon : undefined;
  const fromDaemon: SharedSource = daemon ? sharedByDaemon(daemon) : emptySource();
  const shared = opened ? sharedInStore(opened.store) : fromDaemon;
  const reading = await openForReading({ ...options, shared, engine: opened?.engine }).catch((error) =>
    thenCleanUp(
      () => Promise.reject(error),
      async () => opened?.close(),
    ),
  );
  if (!reading.ok) {
    await opened?.close();
    return reading;
  }
  const close = () =>
    thenCleanUp(
      () => reading.value.close(),
      async () => opened?.close(),
    );
  const api = announcingSlowUsage(reading.value.api);
  return { ok: true, value: { sources: { ...reading.value, api, accounts, stored: shared.usage }, close } };
}
