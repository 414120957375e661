import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import type { Clock } from '../../src/ports/clock.ts';

const YEAR_MS = 365 * 86_400_000;
const NOW_MS = Date.parse('2026-03-02T08:00:00Z');

it('a reading made while the clock was ahead is no newer than its age once the clock is set back', () => {
  const time = { nowMs: NOW_MS + YEAR_MS, monotonicMs: 1_000 };
  const clock = { now: () => time.nowMs, monotonicMs: () => time.monotonicMs } as Clock;
  const fleet = createFleet({ clock });
  const project = { projectId: 'shop' } as never;
  fleet.cache({ project, computes: [], unreadable: [], readAtMs: clock.now(), readAtMonotonicMs: clock.monotonicMs() });
  Object.assign(time, { nowMs: NOW_MS, monotonicMs: 31_000 });
  expect(fleet.cachedProject('shop')?.readAtMs).toBe(NOW_MS - 30_000);
  expect([...fleet.cachedProjects()].map(({ readAtMs }) => readAtMs)).toEqual([NOW_MS - 30_000]);
});
