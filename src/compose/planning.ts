import { createHash } from 'node:crypto';
import { type FleetReading, type OnProgress, readFleet, refusedNotes } from '../app/fleet/read-fleet.ts';
import { findInStore } from '../app/operator/find-compute.ts';
import { spansOf } from '../app/usage/budget-store.ts';
import type { Result } from '../common/result.ts';
import type { ComputeSettings } from '../domain/compute/compute.ts';
import { asksForConnections, needsOf, withValidity } from '../domain/connections/connection-samples.ts';
import { type ConnectionHistory, type ConnectionSample, STALE_AFTER_MS } from '../domain/connections/connections.ts';
import { type FleetPlan, type FleetSituation, planFleet } from '../domain/evaluate/plan-fleet.ts';
import { limitsBesideLists, withWavesOf } from '../domain/evaluate/ready-waves.ts';
import { type CompiledPolicies, compilePolicies, withBudgetSteps } from '../domain/policy/compiled-policies.ts';
import type { ConnectionNeed } from '../domain/policy/directive.ts';
import { DEFAULT_SOURCE_EVERY_MS, type PolicySet } from '../domain/policy/policy.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import type { ControlApi, FleetFacts, Project } from '../ports/control-api.ts';
import type { Store, ConnectionSample as StoredSample } from '../ports/store.ts';
import { accountFor } from '../settings/accounts.ts';
import type { Settings } from '../settings/settings.ts';
import { factsWithoutStore } from './daemon-facts.ts';
import { openForReading, type Reading } from './reading.ts';
import { factsIn, NOTHING_STORED, openStoreToRead, type StoredFacts } from './stored-facts.ts';

/** So far ahead the next boundary of a compute names its wave. */
const WAVES_AHEAD_MS = 24 * 60 * 60_000;

export interface PlanningOptions {
  settings: Settings;
  policies: PolicySet;
  /** A snapshot to plan for instead of the live fleet. */
  fleetFile?: string | undefined;
  /** The instant to plan for, milliseconds since the epoch; now if absent. */
  atMs?: number | undefined;
  mode: 'enforce' | 'observe';
  /** Plans for the computes of this project alone, by its id or name. What holds for the whole fleet, such as at_once, is left out. */
  project?: string | undefined;
  /** The same for the project of this compute, where that is not named and what is stored tells it. */
  compute?: string | undefined;
  /** Reads branches even where no policy selects by them. */
  readBranches?: boolean;
  /** Called with how far the reading of the fleet has come. */
  onProgress?: OnProgress | undefined;
}

export interface Planning {
  plan: FleetPlan;
  policies: CompiledPolicies;
  /** The project that was planned for alone. */
  project: string | undefined;
  /** From what it was made. */
  situation: FleetSituation;
  projects: readonly Project[];
  /** One line for each part of the fleet that could not be read: the plan leaves it out. */
  missing: string[];
  /** One line for each assumption that the reader must know. */
  notes: string[];
}

/** Plans once for the whole fleet, live or in a file. Nothing is written anywhere, and no store is made. */
export async function planOnce(options: PlanningOptions): Promise<Result<Planning>> {
  if (options.fleetFile !== undefined) return planWith(options, undefined, []);
  const stored = await openStoreToRead(options.settings);
  if (!stored.ok) return stored;
  if (!('opened' in stored)) {
    const { facts, notes } = await factsWithoutStore(options.settings, stored, options.compute);
    return planWith({ ...options, facts }, undefined, notes);
  }
  try {
    return await planWith(options, stored.opened, []);
  } finally {
    await stored.opened.close();
  }
}

async function planWith(
  options: PlanningOptions & { facts?: StoredFacts },
  stored: { engine: NonNullable<Parameters<typeof openForReading>[0]['engine']>; store: Store } | undefined,
  notes: string[],
): Promise<Result<Planning>> {
  const { settings, fleetFile, atMs: nowMs = Date.now() } = options;
  const project = options.project ?? (await projectOf(options, stored?.store));
  const shared = stored && settings.queue.kind !== 'embedded' ? { engine: stored.engine } : {};
  const opened = await openForReading({ settings, fleetFile, nowMs, usesReserve: project !== undefined, ...shared });
  if (!opened.ok) return opened;
  const reading = opened.value;
  try {
    return await planReading({ ...options, project, reading, store: stored?.store, notes });
  } finally {
    await reading.close();
  }
}

/** The project of the compute that is asked for, if it is stored: then only that project is read. */
export async function projectOf(
  { compute, facts }: Pick<PlanningOptions, 'compute'> & { facts?: StoredFacts },
  store: Store | undefined,
): Promise<string | undefined> {
  if (compute === undefined) return undefined;
  return store ? (await findInStore({ store }, compute))?.projectId : facts?.projects?.get(compute);
}

/** Reads the fleet that is open, and what is stored of it, and plans. */
export async function planReading(
  options: PlanningOptions & {
    /** Stored facts, where there is no store to read them from. */
    facts?: StoredFacts;
    reading: Pick<Reading, 'facts' | 'takenAtMs' | 'explain'> & { api: ControlApi };
    store: Store | undefined;
    notes: string[];
  },
): Promise<Result<Planning>> {
  const { reading, store, project, onProgress } = options;
  const policies = compilePolicies(options.policies);
  const fleet = await readFleet({
    api: reading.api,
    readBranches: policies.selectsByBranch || options.readBranches === true,
    project,
    onProgress,
  });
  const missing = fleet.errors.map((error) => reading.explain(error));
  const [first] = missing;
  if (first !== undefined && fleet.projects.length === 0) return { ok: false, problem: first };
  const stored = await storedFacts(store, options, fleet);
  const situation = withWaves(
    situationOf(options, { policies: withBudgetSteps(policies, spansOf(stored.budgets)), fleet, stored }),
    { settings: options.settings, fixed: stored.readyWaves, isWhole: project === undefined },
  );
  const staged = (stored.staged ?? []).map((message) => `staged: ${message}`);
  const notes = [...options.notes, ...staged, ...branchNotes(fleet)];
  return {
    ok: true,
    value: {
      plan: planFleet(situation),
      project,
      policies,
      situation,
      projects: fleet.projects,
      missing,
      notes,
    },
  };
}

/** With the waves that are fixed, and where the whole fleet is known also those of the next day. */
function withWaves(
  situation: FleetSituation,
  { settings, fixed, isWhole }: { settings: Settings; fixed: readonly ReadyWaves[]; isWhole: boolean },
): FleetSituation {
  const { policies, computes, records, baselines, holds, nowMs } = situation;
  const herd = computes.map((compute) => {
    const { baseline = baselines?.get(compute.computeId), trials } = records.get(compute.computeId) ?? {};
    return { compute, baseline, trials, holds };
  });
  const limits = limitsOf(settings.apiRequestsPerMinute, settings.apiReserve);
  const input = { policies, herd, fixed, limitsOf: limitsBesideLists(limits, computes) };
  return {
    ...situation,
    policies: withWavesOf(input, { fromMs: nowMs, toMs: nowMs + (isWhole ? WAVES_AHEAD_MS : 0) }),
  };
}

async function storedFacts(
  store: Store | undefined,
  { policies, facts = NOTHING_STORED, atMs = Date.now() }: PlanningOptions & { facts?: StoredFacts },
  { projects, computes }: FleetReading,
): Promise<StoredFacts> {
  if (!store) return facts;
  return factsIn(store, {
    projectIds: projects.map(({ projectId }) => projectId),
    computeIds: asksForConnections(policies) ? computes.map(({ computeId }) => computeId) : [],
    nowMs: atMs,
  });
}

function situationOf(
  options: PlanningOptions & { reading: Pick<Reading, 'facts' | 'takenAtMs'> },
  { policies, fleet, stored }: { policies: CompiledPolicies; fleet: FleetReading; stored: StoredFacts },
): FleetSituation {
  const { settings, mode, reading, fleetFile } = options;
  const readAtMs = Date.now();
  const nowMs = options.atMs ?? readAtMs;
  const live = fleetFile === undefined;
  // A file without an instant is taken as it stands at the one that is planned for: the same file gives the same plan on any day.
  const metAtMs = live ? readAtMs : (reading.takenAtMs ?? nowMs);
  const counted = live
    ? connectionsOfStore(stored.samples, policies.set)
    : connectionsOfFile(reading.facts, policies.set, nowMs);
  // Present counts say nothing about another instant.
  const usesConnections = !live || Math.abs(nowMs - readAtMs) <= STALE_AFTER_MS;
  return {
    ...{ policies, mode, nowMs, metAtMs, computes: fleet.computes },
    ...{ records: stored.records, holds: stored.holds, freezes: stored.freezes },
    baselines: baselinesOf(reading),
    ...(usesConnections && { connections: counted }),
    profiles: profilesOf(settings, fleet),
    disruption: settings.disruption,
    manualChanges: settings.manualChanges,
    digest: (text) => createHash('sha256').update(text).digest('hex'),
  };
}

function baselinesOf({ facts }: Pick<Reading, 'facts'>): Map<string, ComputeSettings> {
  const known = [...facts].flatMap(([computeId, { baseline }]) => (baseline ? [[computeId, baseline] as const] : []));
  return new Map(known);
}

function profilesOf({ accounts }: Settings, { projects }: FleetReading): FleetSituation['profiles'] {
  const names = new Set([...accounts.map(({ name }) => name), ...projects.map(({ account }) => account)]);
  return new Map(
    [...names].flatMap((name) => {
      const account = accountFor(accounts, name);
      return account ? [[name, account.profile] as const] : [];
    }),
  );
}

function branchNotes({ branchNamesRefused }: FleetReading): string[] {
  const [first] = branchNamesRefused;
  if (first === undefined) return [];
  const more = branchNamesRefused.length > 1 ? ` and ${branchNamesRefused.length - 1} more projects` : '';
  return refusedNotes([`${first}${more}`]);
}

/** Connections by compute id, as headroom is evaluated by them. */
type Connections = ReadonlyMap<string, ConnectionHistory>;

/**
 * The connections of a fleet file, taken as constant for as long as any policy looks back, and for each source: a file knows one moment
 * only, and a plan from it must not wait for more.
 */
function connectionsOfFile(facts: FleetFacts, set: PolicySet, nowMs: number): Connections {
  const needs = needsOf(set.policies);
  const windowMs = Math.max(0, ...needs.map(({ scaleDownAfterMs }) => scaleDownAfterMs));
  const byCount = new Map<number, ConnectionHistory>();
  const known = new Map<string, ConnectionHistory>();
  for (const [computeId, { connections }] of facts) {
    if (connections === undefined) continue;
    const history = byCount.get(connections) ?? sameForAll(needs, steady(connections, nowMs, windowMs));
    byCount.set(connections, history);
    known.set(computeId, history);
  }
  return known;
}

/** Stored counts, for each source that the policies name. */
function connectionsOfStore(samples: ReadonlyMap<string, readonly StoredSample[]>, set: PolicySet): Connections {
  const needs = needsOf(set.policies);
  const counted = [...samples].filter(([, all]) => all.length > 0);
  return new Map(
    counted.map(([computeId, all]) => {
      const of = (name: string) => {
        const { everyMs = DEFAULT_SOURCE_EVERY_MS } = set.sources.get(name) ?? {};
        return all.filter(({ source = name }) => source === name).map((sample) => withValidity(sample, everyMs));
      };
      // Also without headroom: a change that waits for a quiet moment asks for any count.
      return [
        computeId,
        new Map([['', all], ...needs.map(({ connections }) => [connections, of(connections)] as const)]),
      ];
    }),
  );
}

function sameForAll(needs: readonly ConnectionNeed[], samples: readonly ConnectionSample[]): ConnectionHistory {
  // Also without headroom: a change that waits for a quiet moment asks for any count.
  return new Map([['', samples], ...needs.map(({ connections }) => [connections, samples] as const)]);
}

/** So many samples that none is missing: a gap would count as not known. */
function steady(connections: number, nowMs: number, windowMs: number): ConnectionSample[] {
  const gaps = Math.ceil(windowMs / STALE_AFTER_MS);
  return Array.from({ length: gaps + 1 }, (_, index) => ({
    atMs: nowMs - Math.min(windowMs, (gaps - index) * STALE_AFTER_MS),
    connections,
  }));
}
