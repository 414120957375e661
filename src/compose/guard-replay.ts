/** Replays a guard with past samples, which this machine reads from the guard's source. */

import { systemClock } from '../adapters/clock/system-clock.ts';
import { type DataSince, dataSince } from '../app/guards/data-since.ts';
import { createRecordedSeries } from '../app/guards/recorded-series.ts';
import { type ReplayedLowering, type ReplayOptions, replayGuard } from '../app/guards/replay.ts';
import type { Result } from '../common/result.ts';
import { EARLIER_DAYS } from '../domain/guards/verdict.ts';
import type { ConnectionSource } from '../domain/policy/policy.ts';
import { DAY_MS, MINUTE_MS } from '../domain/time/units.ts';
import type { CountError } from '../ports/connections.ts';
import type { Settings } from '../settings/settings.ts';
import { openSeriesSources, recordedByPrometheus } from './sources-and-receivers.ts';

export interface GuardReplay extends DataSince {
  lowerings: readonly ReplayedLowering[];
  /** Connections when a harm was found, by lowering; absent where the source has no count. */
  connections: ReadonlyMap<ReplayedLowering, number>;
}

export async function replayFromSource(
  settings: Settings,
  options: Omit<ReplayOptions, 'series' | 'clock'>,
): Promise<Result<GuardReplay>> {
  const { guard, source, fromMs, toMs, signal } = options;
  const sources = openSeriesSources({ settings, hide: () => {} });
  const unanswered = ({ message, code }: CountError) =>
    ({
      ok: false,
      problem: `guard ${guard.name}: source ${source.name} did not answer: ${message} (${code})`,
    }) as const;
  try {
    const earliestMs = fromMs - (guard.badWhen.relative ? EARLIER_DAYS + 1 : 1) * DAY_MS;
    const since = await dataSince(sources.of(source), guard, { fromMs: earliestMs, toMs, signal });
    if (!since.ok) return unanswered(since.error);
    const { ownMs, anyMs } = since.value;
    if (ownMs === undefined && (guard.noData === 'unknown' || anyMs === undefined)) {
      const problem = `guard ${guard.name}: source ${source.name} has no samples of its query in this time: ${guard.query}`;
      return { ok: false, problem };
    }
    const replay = await replayGuard({ ...options, series: createRecordedSeries(sources), clock: systemClock() });
    if (!replay.ok) return unanswered(replay.error);
    const { lowerings } = replay;
    return {
      ok: true,
      value: { ...since.value, lowerings, connections: await connectionsAtHarm(settings, source, lowerings) },
    };
  } finally {
    await sources.close();
  }
}

/** Reads how many connections a restart would have dropped when each harm was found. */
async function connectionsAtHarm(
  settings: Settings,
  source: ConnectionSource,
  lowerings: readonly ReplayedLowering[],
): Promise<ReadonlyMap<ReplayedLowering, number>> {
  const connections = new Map<ReplayedLowering, number>();
  if (source.from !== 'prometheus' || source.query === undefined) return connections;
  for (const row of lowerings) {
    const harm = row.events.find(({ outcome }) => outcome === 'harm');
    if (!harm) continue;
    const range = { fromMs: harm.atMs, toMs: harm.atMs + MINUTE_MS, stepMs: MINUTE_MS };
    const counts = await recordedByPrometheus({ settings, source, computes: [row.compute], range });
    const [count] = (counts.ok && counts.value.get(row.compute.computeId)) || [];
    if (count) connections.set(row, count.connections);
  }
  return connections;
}
