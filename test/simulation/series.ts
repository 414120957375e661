/**
 * The source of guards: answers with a latency for each awake compute, which is bad while the compute has less CU than its clients need. Like
 * any source it may be away or slow, and know nothing of a compute, or two things. What each daemon was told is remembered.
 */

import type { Series } from '../../src/domain/guards/verdict.ts';
import type { SeriesRead, SeriesSources } from '../../src/ports/guards.ts';
import { bookOf, SECOND_MS } from './book.ts';
import { latencyMs, type SimDaemon } from './daemon.ts';
import type { World } from './world.ts';

export type GuardState = 'healthy' | 'bad' | 'unknown';

/** What a daemon was told of one compute. */
export interface ToldState {
  daemon: SimDaemon;
  guard: string;
  computeId: string;
  askedAtMs: number;
  answeredAtMs: number;
  state: GuardState;
}

/** A source that is slow answers after so long at most, in milliseconds: also later than ebb waits. */
const SLOWEST_MS = 30 * SECOND_MS;

export function seriesOf(world: World, daemon: SimDaemon): SeriesSources {
  const { life, index } = daemon;

  async function latest(guard: string, signal: AbortSignal): Promise<SeriesRead> {
    world.reach('port series.latest');
    const askedAtMs = life.clock.now();
    const slow = world.faultsAt('source_slow', index);
    try {
      const who = `d${index} ${guard}`;
      await life.pass(slow ? world.diceFor(who).between(0, slow.by * SLOWEST_MS) : latencyMs(world, who), signal);
    } catch {
      return refused(world, { daemon, guard, askedAtMs }, 'timeout');
    }
    if (world.faultsAt('source_down', index)) return refused(world, { daemon, guard, askedAtMs }, 'unavailable');
    const value: Series[] = [];
    for (const { id, state } of world.platform.platform.world().computes.values()) {
      note(world, { daemon, guard, askedAtMs }, id, stateOf(world, id));
      if (state === 'active') value.push(...seriesOfCompute(world, id));
    }
    return { ok: true, value };
  }

  const source = { latest, range: async () => ({ ok: true as const, value: [] }) };
  return { of: () => source, close: async () => {} };
}

type Question = Pick<ToldState, 'daemon' | 'guard' | 'askedAtMs'>;

function refused(world: World, question: Question, code: 'timeout' | 'unavailable'): SeriesRead {
  for (const { id } of world.platform.platform.world().computes.values()) note(world, question, id, 'unknown');
  return { ok: false, error: { code, message: 'the source is in trouble' } };
}

function note(world: World, question: Question, computeId: string, state: GuardState): void {
  bookOf(world).told.push({ ...question, computeId, state, answeredAtMs: world.time.now() });
}

/** What there is to say of a compute now; nothing, unless it is awake. */
export function stateOf({ platform, people, time }: World, id: string): GuardState {
  const compute = platform.platform.world().computes.get(id);
  const isSilent = people.silences.some(({ computeId, untilMs }) => computeId === id && untilMs > time.now());
  if (compute?.state !== 'active' || isSilent) return 'unknown';
  return (people.demands.get(id) ?? 0) > compute.maxCu ? 'bad' : 'healthy';
}

function seriesOfCompute({ platform, people, time }: World, id: string): Series[] {
  const maxCu = platform.platform.world().computes.get(id)?.maxCu ?? 1;
  const value = (people.demands.get(id) ?? 0) / maxCu;
  const one: Series = { labels: { compute: id }, samples: [{ atMs: Math.floor(time.now()), value }] };
  const silence = people.silences.findLast(({ computeId, untilMs }) => computeId === id && untilMs > time.now());
  if (!silence) return [one];
  if (silence.how === 'missing') return [];
  return silence.how === 'empty' ? [{ ...one, samples: [] }] : [one, { ...one, labels: { ...one.labels, le: '1' } }];
}
