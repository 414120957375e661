import type { Compute } from '../../domain/compute/compute.ts';
import { CONNECTION_PROFILES, type ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import { type ConnectionCounters, type CountOutcome, SOURCE_ERROR_CODES } from '../../ports/connections.ts';
import { type RunInBackground, type Running, StoppedError } from '../background.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import type { LeaderLease } from '../group/leader.ts';
import { profileOf } from '../rules.ts';
import { type CountedComputes, countedComputes, type SampleSourceDeps, sampleSource } from './source.ts';

/** Longest duration of one round of a source, in real milliseconds. */
const MAX_ROUND_MS = 30_000;

/** The lease on counting lasts for this share of the source's interval. During the lease no other daemon of the group counts. */
const LEASE_SHARE = 0.9;

export interface SamplingDeps extends SampleSourceDeps {
  counters: ConnectionCounters;
  storeClock: StoreClock;
  leaderLease: LeaderLease;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
  runInBackground: RunInBackground;
  /** Interval between checks for due sources, in real milliseconds. */
  rhythm: { samplingMs: number };
}

interface SourceState {
  dueMs: number;
  answeredAtMs?: number;
  running?: Promise<void>;
  /** The error codes in the last log line about the source, joined. */
  loggedCodes: string;
  mismatches: Set<string>;
}

/**
 * Counts the connections that policies need, at the interval of each source. One daemon of the group counts and stores; the others read the
 * stored counts, so that all decide by the same ones.
 */
export function startSampling(deps: SamplingDeps): Running {
  const states = new Map<string, SourceState>();
  const stop = new AbortController();

  async function tick(): Promise<void> {
    // With a wrong clock, counts would seem to be old or from the future.
    if ((await deps.storeClock.excessiveOffsetMs()) !== undefined) return;
    const nowMs = deps.clock.now();
    if (isAnyDue(deps, states)) startDue(nowMs);
    for (const [name, state] of states) exportAge(deps, name, state);
  }

  function startDue(nowMs: number): void {
    const all = countedComputes(deps);
    forgetUnwanted(deps, states, all);
    for (const counted of all) {
      const { name, everyMs } = counted.source;
      const state = states.get(name) ?? newState(deps, name, nowMs);
      states.set(name, state);
      if (state.running || !isDue(state.dueMs, everyMs, nowMs)) continue;
      state.dueMs = nowMs + everyMs;
      state.running = deps
        .runInBackground('connection_counts', () => round(counted, state))
        .finally(() => {
          delete state.running;
        });
    }
  }

  async function round(counted: CountedComputes, state: SourceState): Promise<void> {
    const { source } = counted;
    const isCounting = await acquireCounting(deps, source);
    const signal = AbortSignal.any([stop.signal, deps.clock.timeout(MAX_ROUND_MS)]);
    const outcomes = await sampleSource(deps, counted, { counters: deps.counters, isCounting, signal });
    if (stop.signal.aborted) return;
    reportErrors(deps, source, state, outcomes);
    for (const compute of counted.computes) {
      const outcome = outcomes.get(compute.computeId);
      const reported = outcome?.ok && outcome.value !== 'full' ? outcome.value.maxConnections : undefined;
      if (reported !== undefined) noteMismatch(deps, state.mismatches, compute, reported);
    }
    const hasAnswered = [...outcomes.values()].some(({ ok }) => ok);
    if (hasAnswered || !isCounting) state.answeredAtMs = deps.clock.now();
  }

  const ticks = deps.clock.every(deps.rhythm.samplingMs, () => deps.runInBackground('source_schedule', tick));
  return {
    async close() {
      stop.abort(new StoppedError());
      await ticks.close();
      await Promise.all([...states.values()].map(({ running }) => running));
    },
  };
}

/** Starts the state of a source. Its error counters are exported as 0 at once, so that a rate over them includes the first error. */
function newState({ telemetry: { metrics } }: SamplingDeps, source: string, nowMs: number): SourceState {
  for (const code of SOURCE_ERROR_CODES) metrics.increment('ebb_connection_source_errors_total', { source, code }, 0);
  return { dueMs: nowMs, loggedCodes: '', mismatches: new Set() };
}

/** Returns true if a source is due or was removed. Only then are all computes searched, which takes long in a large fleet. */
function isAnyDue({ clock, rules }: SamplingDeps, states: ReadonlyMap<string, SourceState>): boolean {
  const nowMs = clock.now();
  const { sources } = rules.current.policies.set;
  const isGone = [...states.keys()].some((name) => !sources.has(name));
  return (
    isGone || [...sources.values()].some(({ name, everyMs }) => isDue(states.get(name)?.dueMs ?? 0, everyMs, nowMs))
  );
}

/** If a source would be due only after more than an interval, the clock was set back: the source is due. */
function isDue(dueMs: number, everyMs: number, nowMs: number): boolean {
  return nowMs >= dueMs || dueMs > nowMs + everyMs;
}

/**
 * Takes the lease on counting; returns false if another daemon counts. Only the leader counts, since it knows the whole fleet. The lease is
 * not given back, so that a new leader does not count too early. It ends shortly before the source is due again.
 */
async function acquireCounting(
  { store, clock, holder, leaderLease }: SamplingDeps,
  { name, everyMs }: ConnectionSource,
): Promise<boolean> {
  if (!leaderLease.isHeld()) return false;
  const realMs = clock.realDelayMs(clock.now() + everyMs);
  const ttlMs = Math.max(1, Math.floor(realMs * LEASE_SHARE));
  return (await store.acquireLease(`connections-${encodeURIComponent(name)}`, holder, ttlMs)) !== undefined;
}

function forgetUnwanted(
  { samples, telemetry }: SamplingDeps,
  states: Map<string, SourceState>,
  all: CountedComputes[],
): void {
  const idsBySource = new Map(
    all.map(({ source, computes }) => [source.name, new Set(computes.map((one) => one.computeId))]),
  );
  samples.keepOnly((computeId, source) => idsBySource.get(source)?.has(computeId) ?? false);
  for (const name of states.keys()) if (!idsBySource.has(name)) states.delete(name);
  telemetry.metrics.clear('ebb_connection_source_age_seconds');
}

function exportAge({ clock, telemetry }: SamplingDeps, source: string, { answeredAtMs }: SourceState): void {
  if (answeredAtMs === undefined) return;
  const seconds = Math.max(0, clock.now() - answeredAtMs) / 1000;
  telemetry.metrics.set('ebb_connection_source_age_seconds', { source }, seconds);
}

/** Counts the errors of a source, and logs a new kind of error once. */
function reportErrors(
  { telemetry: { log, metrics } }: SamplingDeps,
  { name: source }: ConnectionSource,
  state: SourceState,
  outcomes: ReadonlyMap<string, CountOutcome>,
): void {
  const failures = [...outcomes].flatMap(([computeId, outcome]) =>
    outcome.ok || outcome.error.code === 'not_active' ? [] : [{ computeId, ...outcome.error }],
  );
  for (const { code } of failures) metrics.increment('ebb_connection_source_errors_total', { source, code });
  const codes = [...new Set(failures.map(({ code }) => code))].sort();
  if (outcomes.size === 0 || codes.join() === state.loggedCodes) return;
  state.loggedCodes = codes.join();
  const [first] = failures;
  if (first === undefined) {
    log.info({ event: 'ebb.source_recovered', source }, `source ${source} counts connections again`);
    return;
  }
  log.warn(
    { event: 'ebb.source_failed', source, codes, failed: failures.length, asked: outcomes.size },
    `source ${source} does not count ${failures.length} of ${outcomes.size} computes; for ${first.computeId}: ${first.message}`,
  );
}

/** Logs once for each compute and size when a server's max_connections differs from the account's profile. */
function noteMismatch(
  { rules, telemetry: { log } }: SamplingDeps,
  logged: Set<string>,
  compute: Compute,
  reported: number,
): void {
  const profile = profileOf(rules, compute.account);
  const expected = profile.maxConnections(compute);
  const key = `${compute.computeId} ${compute.minCu} ${compute.maxCu} ${reported}`;
  // During a change, the server still has its old limit.
  if (expected === reported || compute.pendingState !== undefined || logged.has(key)) return;
  logged.add(key);
  const others: ConnectionProfile[] = Object.values(CONNECTION_PROFILES);
  const fitting = others.find((other) => other.maxConnections(compute) === reported);
  const advice = fitting === undefined ? 'give the table of its sizes as profile' : `the profile ${fitting.name} fits`;
  log.warn(
    { event: 'ebb.profile_mismatch', compute: compute.computeId, reported, expected, profile: profile.name },
    `${compute.computeId} has max_connections ${reported}, profile ${profile.name} says ${expected}: ${advice}`,
  );
}
