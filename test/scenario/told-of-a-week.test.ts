/**
 * What the teams of a fleet are told in an ordinary week: each disconnect in time, or as unplanned; at most three other messages a team and
 * day; nothing that did not happen. Over the daemon's own metrics no critical alert fires but for what an edit restarts at once, and
 * at most two others. CI has a Thursday morning of 60 computes (half a minute of processor time); EBB_LONG=1 a week of 300, of three seeds
 * (twenty minutes each).
 */
import { expect, it } from 'vitest';
import { describeWith } from '../support/requirements.ts';
import { isLong } from '../support/seed.ts';
import { MINUTE_MS } from './operators-week.ts';
import { firstFired, minutesFiring } from './rules-test.ts';
import { judge, type Verdict } from './told-judge.ts';
import { runWeek, type Week } from './told-week.ts';

const HOUR_MS = 3_600_000;
/** What an edit restarts at once, it restarts within half an hour; the alert looks back for a quarter. */
const EDIT_MINUTES = 45;
const MONDAY_MS = Date.UTC(2026, 0, 12);
const RUNS = isLong
  ? [27001, 27002, 27003].map((seed) => ({
      seed,
      size: 300,
      fromMs: MONDAY_MS,
      toMs: MONDAY_MS + 177 * HOUR_MS,
    }))
  : [{ seed: 27001, size: 60, fromMs: MONDAY_MS + 79.6 * HOUR_MS, toMs: MONDAY_MS + 83.3 * HOUR_MS }];

describeWith('promtool', 'in an ordinary week', () => {
  it.each(RUNS)(
    'of $size computes, seed $seed: disconnects are told, little else is, all of it is true, and no alert wakes anybody',
    async ({ fromMs, toMs, ...drawn }) => {
      const week = await runWeek({ fromMs, toMs, ...drawn });
      const verdict = judge(week, fromMs, toMs);
      process.stdout.write(tableOf(verdict));
      expect(verdict.untold).toEqual([]);
      expect(verdict.untrue).toEqual([]);
      expect(verdict.most).toBeLessThanOrEqual(3);
      expect(verdict.inTime).toBeGreaterThan(0);
      const alerts = alertsOf(week, fromMs, toMs);
      process.stdout.write(`alerts: ${JSON.stringify(alerts)}\n`);
      expect(alerts.critical).toEqual([]);
      expect(alerts.warning.length).toBeLessThanOrEqual(2);
    },
    3_600_000,
  );
});

/**
 * The alerts that fired, by severity. After an edit a storm of restarts is what the alert is for. To save time the simulated daemon lists the
 * projects each half hour, not each half minute, so that it seems blind.
 */
function alertsOf({ series, deeds }: Week, fromMs: number, toMs: number) {
  const minutes = Math.round((toMs - fromMs) / MINUTE_MS);
  const fired = firstFired(Object.fromEntries(series), minutes);
  fired.delete('EbbBlind');
  const edits = deeds.filter(({ what }) => what === 'edit').map(({ atMs }) => (atMs - fromMs) / MINUTE_MS);
  const isAfterEdit = (minute: number) => edits.some((edit) => minute >= edit && minute < edit + EDIT_MINUTES);
  const storms = minutesFiring(Object.fromEntries(series), 'EbbRestartStorm', minutes);
  if (storms.every(isAfterEdit)) fired.delete('EbbRestartStorm');
  const of = (wanted: string) => [...fired].flatMap(([name, { severity }]) => (severity === wanted ? [name] : []));
  return { critical: of('critical'), warning: of('warning'), storms: storms.length };
}

function tableOf({ table, drops, inTime, ifAwake, late, unplanned, untold, untrue, most }: Verdict): string {
  const rows = [...table].map(
    ([team, days]) => `${team}  ${days.map(({ other, never }) => `${other}+${never}`).join('  ')}`,
  );
  return [
    'messages a day: others + those that are never folded',
    ...rows,
    `${drops} disconnects: ${inTime} announced in time, ${ifAwake} in time as awake perhaps, ${late} as soon as they could be seen, ${unplanned} told as unplanned, ${untold.length} not told`,
    `most others a day ${most}; untrue ${untrue.length}`,
    '',
  ].join('\n');
}
