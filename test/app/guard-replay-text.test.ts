import { describe, expect, it } from 'vitest';
import type { ReplayedLowering } from '../../src/app/guards/replay.ts';
import { replayJson, replayText } from '../../src/cli/guard/replay-text.ts';
import { aCompute, aGuard, at } from '../support/builders.ts';

const SIX = at('2026-03-02T18:00:00Z');
const MINUTE_MS = 60_000;
const compute = aCompute({ projectName: 'web-shop', computeId: 'ep-shop' });
const guard = aGuard({ remedy: 'undo_with_restart' });

function lowered(more: Partial<ReplayedLowering> = {}): ReplayedLowering {
  const changes = [{ group: 'size', from: { minCu: 1, maxCu: 4 }, to: { minCu: 0.5, maxCu: 2 }, policy: 'nights' }];
  const before = { state: 'healthy', value: 0.1, limit: 0.4, message: '0.1, bad above 0.4' };
  return {
    ...{ compute, lowering: { atMs: SIX, changes }, before, events: [], sampledMs: 30 * MINUTE_MS, blindMs: 0 },
    ...more,
  } as ReplayedLowering;
}

const event = (outcome: string, afterMs: number) =>
  ({ computeId: 'ep-shop', loweredAtMs: SIX, badSinceMs: SIX + 5 * MINUTE_MS, outcome, atMs: SIX + afterMs }) as never;
const harm = lowered({ events: [event('harm', 8 * MINUTE_MS)], takenBack: ['size'] });

function replayed(lowerings: ReplayedLowering[], connections: [ReplayedLowering, number][] = []) {
  const replay = { lowerings, ownMs: SIX - 1, anyMs: SIX - 1, connections: new Map(connections) };
  return { guard, replay, fromMs: SIX - MINUTE_MS, toMs: SIX + 60 * MINUTE_MS };
}

describe('what a replay prints', () => {
  it('is a line for each lowering, and sums', () => {
    const lines = [
      harm,
      lowered({ events: [event('healthy', 30 * MINUTE_MS)] }),
      lowered({ events: [event('common_cause', 9 * MINUTE_MS)], before: 'asleep' }),
      lowered({ notTriedSinceMs: SIX - MINUTE_MS, before: 'not_asked' }),
      lowered({ sampledMs: 3 * MINUTE_MS, before: { state: 'bad', message: 'bad' } }),
    ];
    const text = replayText(replayed(lines, [[harm, 12]]));
    expect(text).toContain(
      'harm, bad since 2026-03-02T18:05:00Z, found 2026-03-02T18:08:00Z: undone, drops 12 connections',
    );
    expect(text).toMatch(/asleep +bad, common cause: notified/);
    expect(text).toContain('not lowered, since undone at 2026-03-02T17:59:00Z');
    expect(text).toContain('bad: held back  healthy for 3 of 30m, then changed, asleep or still watched');
    const unfinished = '1 changed, fell asleep or were still watched before the guard could tell';
    expect(text).toContain(`5 lowerings: 1 healthy, 1 harm, 1 of a common cause, ${unfinished}, 1 not tried again`);
    expect(text).toContain('1 held back before; 1 undone, connections dropped: 12');
  });

  it('does not guess connections that are not known, and says where nothing was lowered', () => {
    expect(replayText(replayed([harm]))).toContain('1 undone, connections dropped: not known');
    expect(replayText(replayed([]))).toContain('ebb has lowered none of its computes.');
    expect(JSON.parse(replayJson(replayed([harm])))).toMatchObject({
      sums: { lowerings: 1, harm: 1, undone: 1, connections_dropped: null },
      lowerings: [{ outcome: 'harm', remedy: 'undone', bad_since: '2026-03-02T18:05:00Z', connections_dropped: null }],
    });
  });
});
