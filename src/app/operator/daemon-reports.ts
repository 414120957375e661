/** What each daemon of a group tells of itself in the store, for those who can ask only the store. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isoInstant } from '../../domain/time/instants.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DaemonDocument } from '../../ports/documents.ts';
import type { Store, UsageStore } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { LeaderLease } from '../group/leader.ts';
import { type SetsDeps, stagedSets } from '../rollout/write-permission.ts';
import { countWaiting, type FleetDeps, unmetOf } from './documents.ts';

/** Where reports are in the store: no account has this name, and no unit. */
const ACCOUNT = ' ';
const PREFIX = 'daemon ';

/** A daemon that has not reported for so long is forgotten, in milliseconds. */
const FORGOTTEN_AFTER_MS = 86_400_000;

/** A report has room for so much: the daemon's own page has all. */
const MOST_UNMET = 8;
const MOST_STAGED = 3;
const MOST_CHARACTERS = 240;

export interface ReportDeps extends FleetDeps, SetsDeps {
  clock: Clock;
  store: Store;
  mode: DaemonDocument['mode'];
  leaderLease: Pick<LeaderLease, 'isHeld' | 'isAlone'>;
  /** Between two reports, in real milliseconds. */
  rhythm: { resyncMs: number };
  runInBackground: RunInBackground;
  version: string;
}

/** Reports until it is closed; then the daemon is no longer among those of its group. One on a store of its own is asked itself. */
export function startReporting(deps: ReportDeps): Running {
  const { clock, store, rhythm, leaderLease, runInBackground } = deps;
  if (leaderLease.isAlone) return { close: async () => {} };
  const unit = `${PREFIX}${randomUUID()}`;
  const report = () =>
    runInBackground('daemon_report', async () => {
      await store.putUsage(ACCOUNT, new Map([[unit, new TextEncoder().encode(JSON.stringify(documentOf(deps)))]]));
    });
  void report();
  const rounds = clock.every(rhythm.resyncMs, report);
  return {
    async close() {
      await rounds.close();
      await runInBackground('daemon_report', () => store.deleteUsage(ACCOUNT, [unit]));
    },
  };
}

function documentOf(deps: ReportDeps): DaemonDocument {
  const { clock, mode, version, leaderLease, rules } = deps;
  const cut = (text: string) => text.slice(0, MOST_CHARACTERS);
  return {
    host: `${hostname()}:${process.pid}`,
    ...{ version, mode, leader: leaderLease.isHeld() },
    last_seen: isoInstant(clock.now()),
    set_hash: rules.current.policies.set.hash,
    staged: stagedSets(deps)
      .slice(0, MOST_STAGED)
      .map(({ message }) => cut(message)),
    waiting: countWaiting(deps),
    unmet_headroom: unmetOf(deps)
      .slice(0, MOST_UNMET)
      .map((one) => ({ ...one, message: cut(one.message) })),
  };
}

/** The daemons that have reported within a day, the leader first; what a later version reports otherwise is left out. */
export async function readReports(
  store: Pick<UsageStore, 'usageUnits' | 'usage' | 'deleteUsage'>,
  nowMs: number,
): Promise<DaemonDocument[]> {
  const units = (await store.usageUnits(ACCOUNT)).filter((unit) => unit.startsWith(PREFIX));
  if (units.length === 0) return [];
  const reports = [...(await store.usage(ACCOUNT, units))].map(([unit, bytes]) => ({ unit, report: parsed(bytes) }));
  const oldest = isoInstant(nowMs - FORGOTTEN_AFTER_MS);
  const isOld = (report: DaemonDocument) => report.last_seen < oldest;
  const old = reports.filter(({ report }) => report && isOld(report));
  if (old.length > 0)
    await store.deleteUsage(
      ACCOUNT,
      old.map(({ unit }) => unit),
    );
  const current = reports.flatMap(({ report }) => (report && !isOld(report) ? [report] : []));
  return current.toSorted((a, b) => Number(b.leader) - Number(a.leader) || b.last_seen.localeCompare(a.last_seen));
}

function parsed(bytes: Uint8Array): DaemonDocument | undefined {
  try {
    const report: DaemonDocument = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(report.waiting) && Array.isArray(report.staged) ? report : undefined;
  } catch {
    return undefined;
  }
}
