/** Opens what commands decide by: the fleet, or a snapshot of it, and what is stored. */

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
  type StoredFacts,
  type StoredSource,
  sourceFromDaemon,
  sourceFromStore,
} from '../app/situation/stored-source.ts';
import type { Result } from '../common/result.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import { DAY_MS } from '../domain/time/units.ts';
import type { Project } from '../ports/control-api.ts';
import type { Engine } from '../ports/engine.ts';
import { accountFor } from '../settings/accounts.ts';
import type { Settings } from '../settings/settings.ts';
import { openForReading, type ReadingOptions, type SharedSource, sharedByDaemon, sharedInStore } from './reading.ts';
import { openStoreToRead } from './store.ts';

const NOT_SHARED: SharedSource = { readings: async () => undefined };

interface OpenStored {
  source: StoredSource;
  /** Of the store, where it is open here. */
  engine?: Engine;
  close(): Promise<void>;
}

/**
 * What daemons have stored: in their store; told by the daemon that has an embedded one for itself, of the project of `compute`
 * alone if it knows that; else nothing, and a note says so.
 */
async function openStored(settings: Settings, compute?: string): Promise<Result<OpenStored>> {
  const stored = await openStoreToRead(settings);
  if (!stored.ok) return stored;
  if ('opened' in stored) {
    const { store, engine, close } = stored.opened;
    return { ok: true, value: { source: sourceFromStore(store), engine, close } };
  }
  const told = stored.daemon && (await sourceFromDaemon(stored.daemon, compute));
  return { ok: true, value: { source: told ?? emptySource([stored.note]), close: async () => {} } };
}

/** Does work with what is stored; a snapshot has nothing stored. */
async function withStored<T>(
  {
    settings,
    fleetFile,
    compute,
  }: { settings: Settings; fleetFile?: string | undefined; compute?: string | undefined },
  work: (stored: StoredSource, engine: Engine | undefined) => Promise<Result<T>>,
): Promise<Result<T>> {
  if (fleetFile !== undefined) return work(emptySource(), undefined);
  const opened = await openStored(settings, compute);
  if (!opened.ok) return opened;
  const { source, engine, close } = opened.value;
  try {
    return await work(source, engine);
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

export interface PlanningOptions extends PlanOptions {
  settings: Settings;
  /** A snapshot to plan for instead of the live fleet. */
  fleetFile?: string | undefined;
  /** Reads the fleet from the control API, although daemons may have stored it. */
  live?: boolean | undefined;
  /** Plans for the project of this compute alone, where `project` is not given and what is stored tells it. */
  compute?: string | undefined;
}

/** Plans once for the whole fleet, live or in a file. Nothing is written anywhere, and no store is made. */
export async function planOnce(options: PlanningOptions): Promise<Result<PlanResult>> {
  const { settings, fleetFile, live, compute, atMs: nowMs = Date.now() } = options;
  return withStored(options, async (stored, engine) => {
    const project = options.project ?? (compute === undefined ? undefined : await stored.projectOf(compute));
    const group = engine && settings.queue.kind !== 'embedded' ? { engine } : {};
    const usesReserve = project !== undefined;
    const liveSubject = options.project ?? compute;
    const reading = { settings, fleetFile, live, liveSubject, shared: stored, nowMs, usesReserve, ...group };
    return withReading(reading, (source) =>
      planFor({ ...options, project }, { source, stored, rules: planRulesOf(settings), now: Date.now }),
    );
  });
}

/** The settings that a plan takes something from. */
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

/** Reads the fleet, live or from a file, as a forecast starts from it. Nothing is written, and no store is made. */
export async function readForForecast(
  options: ForecastOptions & Pick<ReadingOptions, 'settings' | 'fleetFile' | 'live'>,
): Promise<Result<ForecastStart>> {
  return withStored(options, (stored) =>
    withReading({ ...options, shared: stored }, (source) => readForecastStart(options, { source, stored })),
  );
}

/** Reads the stored facts of one kind, and nothing else. Without them, a note says why, unless nothing is stored yet. */
export async function readFacts<What extends keyof typeof FLEET_FACTS>(
  settings: Settings,
  what: What,
  nowMs: number,
): Promise<{ facts?: StoredFacts[What]; notes: string[] }> {
  const { readFromStore, readFromDaemon } = FLEET_FACTS[what];
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
  return facts ? { facts, notes: [] } : { notes: [`${what} are not known: ${unread.problem}`] };
}

/** Reads the fleet, and its usage as far as anybody knows it. Wakes nothing and writes nothing. */
export async function readFleetUsage({
  settings,
  live,
  ...options
}: FleetUsageOptions & Pick<ReadingOptions, 'settings' | 'live'>): Promise<Result<FleetUsage>> {
  const { operations, nowMs } = options;
  const operationsSinceMs = operations && nowMs - operations.days * DAY_MS;
  return withUsage({ settings, live, operationsSinceMs }, (sources) => fleetUsage(sources, options));
}

/**
 * The usage of projects that were read already, however many, with what the organizations' usage says besides, and the plans of accounts
 * whose settings don't tell them.
 */
export async function readUsageOfProjects({
  settings,
  ...options
}: Parameters<typeof usageOfProjects>[1] & { settings: Settings }): Promise<
  Awaited<ReturnType<typeof usageOfProjects>> & { plans: ReadonlyMap<string, AccountPlan> }
> {
  const read = await withUsage({ settings, live: true }, async (sources) => {
    const usage = await usageOfProjects(sources, options);
    const untold = withoutToldPlan(settings, options.projects);
    const plans = await plansOf(sources, { projects: untold, mayAsk: true, usages: usage.usages });
    return { ...usage, plans };
  });
  return read.ok ? read.value : { usages: [], missing: [read.problem], plans: new Map() };
}

/** The projects of accounts of which the settings don't tell the plan. */
export function withoutToldPlan(settings: Settings, projects: readonly Project[]): Project[] {
  return projects.filter(({ account }) => accountFor(settings.accounts, account)?.plan === undefined);
}

/** Opens the sources of usage when they are first asked for, once, and closes them after the work. */
export async function withUsageSources<T>(
  settings: Settings,
  work: (open: () => Promise<Result<UsageSources>>) => Promise<T>,
): Promise<T> {
  let opening: ReturnType<typeof openUsage> | undefined;
  try {
    return await work(async () => {
      opening ??= openUsage({ settings, live: true });
      const opened = await opening;
      return opened.ok ? { ok: true, value: opened.value.sources } : opened;
    });
  } finally {
    const opened = await opening;
    if (opened?.ok) await opened.value.close();
  }
}

/** Does work with the usage that daemons have collected, if it can be read, and the fleet. */
async function withUsage<T>(options: UsageOptions, work: (sources: UsageSources) => Promise<T>): Promise<Result<T>> {
  const opened = await openUsage(options);
  if (!opened.ok) return opened;
  try {
    return { ok: true, value: await work(opened.value.sources) };
  } finally {
    await opened.value.close();
  }
}

type UsageOptions = Pick<ReadingOptions, 'settings' | 'live' | 'operationsSinceMs'>;

async function openUsage(options: UsageOptions): Promise<Result<{ sources: UsageSources; close(): Promise<void> }>> {
  const { accounts } = options.settings;
  const opening = await openStoreToRead(options.settings);
  const opened = opening.ok && 'opened' in opening ? opening.opened : undefined;
  const daemon = opening.ok && 'daemon' in opening ? opening.daemon : undefined;
  const told = daemon ? sharedByDaemon(daemon) : NOT_SHARED;
  const shared = opened ? sharedInStore(opened.store) : told;
  const reading = await openForReading({ ...options, shared });
  if (!reading.ok) {
    await opened?.close();
    return reading;
  }
  const close = async () => {
    await reading.value.close();
    await opened?.close();
  };
  return { ok: true, value: { sources: { ...reading.value, accounts, stored: shared.usage }, close } };
}
