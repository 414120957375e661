import type { Compute, ComputeSettings } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import {
  compactSamples,
  MOST_SAMPLES,
  needsOf,
  validityMs,
  windowOf,
  withValidity,
} from '../connections/connection-samples.ts';
import type { ConnectionHistory, ConnectionSample } from '../connections/connections.ts';
import type { PolicySet } from '../policy/policy.ts';
import { endOf, intervalOf, type Recording } from './recording.ts';
import { type ReplayedChange, type ReplayRules, simulateDaemon } from './simulated-daemon.ts';

/** A stretch of time in which nothing changed. Instants are milliseconds since the epoch. */
export interface Stretch extends ComputeSettings {
  fromMs: number;
  toMs: number;
  awake: boolean;
  /** Clients that wanted to be connected; absent while unknown. */
  demand?: number;
  /** Connections that users can have. */
  usable: number;
  /** Clients who came when it began and found no place. */
  refused: number;
}

export interface Replay {
  /** They tile the time from the first count to the end. */
  stretches: readonly Stretch[];
  changes: readonly ReplayedChange[];
}

/**
 * Lives through a recording as a daemon would that counts whenever it was counted then: the same judgement, at each count and at
 * each instant that a plan names. A source sees those who found a place, not those who were refused.
 */
export function replay(recording: Recording, rules: ReplayRules): Replay {
  const { counts, profile } = recording;
  const everyMs = intervalOf(recording);
  const endMs = endOf(recording);
  const world = simulateCompute(recording, validityMs(everyMs));
  const { compute } = world;
  const daemon = simulateDaemon(recording, rules, compute);
  const known = rememberCounts(rules.policies.set, everyMs);
  const usable = () => profile.maxConnections(compute) - profile.reserved;
  const stretches: Stretch[] = [];
  let without = 0;
  let next = 0;
  for (let nowMs = counts[0]?.atMs ?? endMs; nowMs < endMs; nowMs = stretches.at(-1)?.toMs ?? endMs) {
    const count = counts[next]?.atMs === nowMs ? counts[next] : undefined;
    const before = without;
    if (count) {
      next += 1;
      world.countConnections(count.connections, nowMs);
      without = Math.max(0, count.connections - usable());
    }
    world.live(nowMs);
    if (count && compute.state !== 'idle') known.add(count.connections - without, nowMs);
    const refused = Math.max(0, without - before);
    const nextReconcileMs = daemon.reconcile(nowMs, known.history, Math.min(world.demandAt(nowMs) ?? 0, usable()));
    // Clients that a raise makes room for are connected now: only new ones can be refused.
    without = Math.min(without, Math.max(0, (counts[next - 1]?.connections ?? 0) - usable()));
    const demand = world.demandAt(nowMs);
    const { minCu, maxCu, suspendTimeoutSeconds } = compute;
    stretches.push({
      ...{ minCu, maxCu, suspendTimeoutSeconds, fromMs: nowMs, awake: compute.state !== 'idle', usable: usable() },
      toMs: Math.min(counts[next]?.atMs ?? endMs, nextReconcileMs, world.nextChangeAfter(nowMs), endMs),
      ...(demand !== undefined && { demand }),
      refused,
    });
  }
  return { stretches, changes: daemon.changes };
}

/** The counts that a daemon remembers: those that the store keeps, and the newest. Every source counts the same. */
function rememberCounts({ policies }: PolicySet, everyMs: number) {
  const names = needsOf(policies).map(({ connections }) => connections);
  const windowMs = Math.max(0, ...names.map((name) => windowOf(name, policies)));
  const history = new Map<string, readonly ConnectionSample[]>();
  let stored: readonly ConnectionSample[] = [];
  return {
    history: history as ConnectionHistory,
    add(connections: number, atMs: number) {
      const all = [...stored, withValidity<ConnectionSample>({ atMs, connections }, everyMs)];
      stored = compactSamples(all, { nowMs: atMs, windowMs, most: MOST_SAMPLES });
      // Also without headroom: a change that waits for a quiet moment asks for any count.
      for (const name of ['', ...names]) history.set(name, all);
    },
  };
}

/** A compute simulated from a recording: it wakes for its clients, and sleeps when there have been none for its timeout. */
interface SimulatedCompute {
  /** Changed in place: policies remember by identity which computes they select. */
  readonly compute: Compute;
  /** Sets the number of clients from this instant on. Milliseconds since the epoch. */
  countConnections(connections: number, atMs: number): void;
  /** Brings its state up to an instant. */
  live(instantMs: number): void;
  /** The clients that want to be connected; undefined while unknown. */
  demandAt(instantMs: number): number | undefined;
  /** The next instant strictly after at which it falls asleep, or from which nothing is known of its clients. */
  nextChangeAfter(instantMs: number): number;
}

/** `validForMs` is the validity of a count. */
function simulateCompute({ compute: seen }: Recording, validForMs: number): SimulatedCompute {
  const { startedAtMs: _started, pendingState: _pending, ...known } = seen;
  // It was there when it was counted, however young it is now.
  const compute: Compute = { ...known, state: 'active', createdAtMs: 0 };
  let lastCount = { connections: 0, atMs: Number.NEGATIVE_INFINITY };
  let quietSinceMs = Number.POSITIVE_INFINITY;

  function sleepsAtMs(): number {
    return maySleep(compute) ? quietSinceMs + compute.suspendTimeoutSeconds * 1000 : Number.POSITIVE_INFINITY;
  }

  return {
    compute,
    countConnections(connections, atMs) {
      lastCount = { connections, atMs };
      quietSinceMs = connections > 0 ? Number.POSITIVE_INFINITY : Math.min(quietSinceMs, atMs);
      if (connections > 0 && compute.state === 'idle') Object.assign(compute, { state: 'active', startedAtMs: atMs });
    },
    live(instantMs) {
      if (instantMs >= sleepsAtMs()) compute.state = 'idle';
    },
    demandAt(instantMs) {
      const isKnown = compute.state === 'idle' || instantMs < lastCount.atMs + validForMs;
      return isKnown ? lastCount.connections : undefined;
    },
    nextChangeAfter(instantMs) {
      if (compute.state === 'idle') return Number.POSITIVE_INFINITY;
      return Math.min(...[sleepsAtMs(), lastCount.atMs + validForMs].filter((ms) => ms > instantMs));
    },
  };
}
