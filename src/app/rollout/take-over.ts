/** A daemon takes over where no daemon that has the newest generation is left: else nobody would write until one comes back. */
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { DaemonDocument } from '../../ports/documents.ts';
import type { DecisionIdentity, Generation } from '../../ports/store.ts';
import type { LeaderLease } from '../group/leader.ts';
import { REPORTS } from '../group/reports.ts';
import { type ActivateDeps, mayTakeOver } from './activate.ts';
import { currentIdentity, registerGeneration } from './generations.ts';
import { short } from './write-permission.ts';

export interface TakeOverDeps extends ActivateDeps {
  leaderLease: Pick<LeaderLease, 'isAlone'>;
}

/** A daemon reports every 10 s, one of 0.1.0 every 30 s: with both times together neither is taken for dead while it runs. */
const LIVE_MS = RECOVERY.leaderLeaseMs;
const ABANDONED_MS = 2 * RECOVERY.leaderLeaseMs;

/** What was seen of the daemons since one generation superseded this daemon, in monotonic milliseconds of its own clock. */
interface Watch {
  number: number;
  /** By daemon, its last report, and when that was first seen. */
  reports: Map<string, { text: string; atMs: number }>;
  checkedAtMs: number;
  /** When a live daemon was last seen to have the generation, or to be nearer to it than this one. */
  heldAtMs: number;
}

/** Called in each round. Takes over once no live daemon has had the newest generation for two leader leases. */
export function createTakeOver(deps: TakeOverDeps): (signal: AbortSignal) => Promise<void> {
  const { sets, store, clock, leaderLease } = deps;
  let watch: Watch | undefined;

  async function isAbandoned(newest: Generation): Promise<boolean> {
    // Nobody else has an embedded store: what is in it is of a release that ran here before.
    if (leaderLease.isAlone) return true;
    const reports = await REPORTS.all(store);
    const nowMs = clock.monotonicMs();
    watch = watchAt(nowMs, newest, watch);
    for (const [name, report] of reports) {
      const isNearer = (report.generation ?? 0) > (sets.generation ?? 0);
      if (isLive(watch, name, report) && (isNearer || has(report, newest))) watch.heldAtMs = nowMs;
    }
    return nowMs - watch.heldAtMs >= ABANDONED_MS;
  }

  return async (signal) => {
    const { newer } = sets;
    const own = currentIdentity(deps);
    const isOpen = newer !== undefined && (await isAbandoned(newer));
    if (!newer) watch = undefined;
    if (!isOpen || sets.takeOver?.decisionHash !== own.decisionHash) sets.takeOver = undefined;
    if (!isOpen || !(await mayTakeOver(deps, own, signal))) return;
    await registerGeneration(deps, own, newer.number);
    if (sets.newer) return;
    sets.takeOver = undefined;
    logTakeOver(deps, newer, own);
  };
}

function logTakeOver({ telemetry, sets }: TakeOverDeps, from: Generation, own: DecisionIdentity): void {
  const fields = { hash: own.setHash, generation: sets.generation, from: from.setHash };
  const message = `no daemon is left that has the newest policies and settings (policy set ${short(from.setHash)}): those of this daemon count again (policy set ${short(own.setHash)})`;
  telemetry.log.warn({ event: 'ebb.generation_taken_over', ...fields }, message);
}

/** While the store was away nobody could report: that time does not count. */
function watchAt(nowMs: number, { number }: Generation, before: Watch | undefined): Watch {
  if (before?.number === number && nowMs - before.checkedAtMs < LIVE_MS) return { ...before, checkedAtMs: nowMs };
  return { number, reports: new Map(), checkedAtMs: nowMs, heldAtMs: nowMs };
}

/** By this daemon's own clock: a daemon lives while its report changes. */
function isLive({ reports, checkedAtMs: nowMs }: Watch, name: string, { last_seen: text }: DaemonDocument): boolean {
  const known = reports.get(name);
  const seen = known?.text === text ? known : { text, atMs: nowMs };
  reports.set(name, seen);
  return nowMs - seen.atMs < LIVE_MS;
}

/** True for a daemon that decides by the generation and may write. One of 0.1.0 says of which policies it is, and no more. */
function has({ mode, set_hash, decision_hash }: DaemonDocument, { setHash, decisionHash }: Generation): boolean {
  if (mode !== 'enforce') return false;
  if (decision_hash === undefined) return set_hash === setHash;
  return decision_hash !== null && decision_hash === decisionHash;
}
