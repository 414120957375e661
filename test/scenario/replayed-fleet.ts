/** What a replay says of the past of a fleet, and what its live guards have said. */

import { createRecordedSeries } from '../../src/app/guards/recorded-series.ts';
import { replayGuard } from '../../src/app/guards/replay.ts';
import { awakeHistory } from '../../src/domain/awake/intervals.ts';
import { createOperationLog } from '../../src/domain/awake/operation-log.ts';
import { groupBy } from '../../src/domain/grouping.ts';
import { policiesOfKind } from '../../src/domain/policy/kinds/kinds.ts';
import { pastLowerings } from '../../src/domain/records/past-lowerings.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import type { GuardedFleet } from './guarded-fleet.ts';

export interface Compared {
  live: number;
  replayed: number;
  /** Events that only one of them has. */
  onlyLive: string[];
  onlyReplayed: string[];
}

/** Compares each event: instant, guard and outcome, and of all but healthy ends the compute. */
export async function compareReplay(fleet: GuardedFleet, fromMs: number): Promise<Compared> {
  const live = numbered([...fleet.said, ...(await namedIn(fleet))]);
  const replayed = numbered(await replayedOf(fleet, fromMs));
  const [left, right] = [new Set(live), new Set(replayed)];
  return {
    live: fleet.said.length,
    replayed: replayed.filter((text) => !text.includes(' ep-')).length,
    onlyLive: live.filter((text) => !right.has(text)).toSorted(),
    onlyReplayed: replayed.filter((text) => !left.has(text)).toSorted(),
  };
}

/** Texts that are the same differ by a number. */
function numbered(texts: readonly string[]): string[] {
  const counts = new Map<string, number>();
  return texts.map((text) => {
    const count = (counts.get(text) ?? 0) + 1;
    counts.set(text, count);
    return count === 1 ? text : `${text} #${count}`;
  });
}

async function namedIn({ store, log }: GuardedFleet): Promise<string[]> {
  const harms = (await store.history({ limit: 1_000_000 })).filter(({ kind }) => kind === 'guard');
  const told = log.lines.flatMap(({ fields }) => {
    const { event = '', guard, compute, lowered_at } = fields as Record<string, string>;
    const [, outcome] = /guard_(no_samples|common_cause)/.exec(event) ?? [];
    return outcome ? [`${guard} ${outcome} ${compute} lowered ${lowered_at}`] : [];
  });
  return [...harms.map(({ atMs, policy, computeId }) => `${isoInstant(atMs)} ${policy} harm ${computeId}`), ...told];
}

async function replayedOf(
  { rules, members, audit, operations, adapter, nowMs }: GuardedFleet,
  fromMs: number,
): Promise<string[]> {
  const { policies } = rules.current;
  const { set } = policies;
  const log = createOperationLog();
  for (const row of operations) log.project(row.projectId).add(row);
  const entries = groupBy(audit, ({ computeId }) => computeId);
  const toMs = nowMs();
  const texts: string[] = [];
  for (const guard of policiesOfKind(set.policies, 'guard')) {
    const index = set.policies.indexOf(guard);
    const source = set.sources.get(guard.source);
    if (!source) continue;
    const selected = [...members.values()].filter(({ compute }) => policies.selects(index, compute, toMs));
    const computes = selected.map(({ compute }) => ({
      compute,
      history: awakeHistory(log.project(compute.projectId).eventsOf(compute.computeId), { fromMs, toMs }),
      lowerings: pastLowerings(entries.get(compute.computeId) ?? [], guard.name),
    }));
    const replay = await replayGuard({
      ...{ guard, source, computes, fromMs, toMs, selects: () => true },
      series: createRecordedSeries({ of: () => adapter, close: async () => {} }),
      policies: new Set(set.policies.map(({ name }) => name)),
      ...{ signal: new AbortController().signal, clock: { nextTurn: async () => {} } },
    });
    if (!replay.ok) throw new Error(replay.error.message);
    for (const { atMs, outcome, computeId, loweredAtMs } of replay.lowerings.flatMap(({ events }) => events)) {
      texts.push(`${isoInstant(atMs)} ${guard.name} ${outcome}`);
      if (outcome === 'harm') texts.push(`${isoInstant(atMs)} ${guard.name} harm ${computeId}`);
      else if (outcome !== 'healthy')
        texts.push(`${guard.name} ${outcome} ${computeId} lowered ${isoInstant(loweredAtMs)}`);
    }
  }
  return texts;
}
