/**
 * A daemon in simulated time with the computes of six teams, and the alerts over what it exports: each of ten kinds of trouble is told.
 * Each takes half a minute of processor time, so that CI has three of them; EBB_LONG=1 has all, with 300 computes. An ordinary week is
 * in alerts-of-a-week.test.ts.
 */
import { expect, it } from 'vitest';
import { describeWith } from '../support/requirements.ts';
import { isLong } from '../support/seed.ts';
import { runTrouble, TROUBLES } from './operators-troubles.ts';

const SEED = 27;
const SIZE = isLong ? 300 : 60;
const SOME = isLong ? TROUBLES : TROUBLES.filter((_, index) => index % 4 === 1);
const LONGEST_MS = 3_600_000;

describeWith('promtool', `${SIZE} computes of six teams, seed ${SEED}`, () => {
  it.each(SOME)(
    'tell that $what: $alert',
    async (trouble) => {
      const alerts = await runTrouble(trouble, { size: SIZE, seed: SEED });
      const minutes = [...alerts].map(([name, afterMinutes]) => `${name} ${afterMinutes}`);
      process.stdout.write(`${trouble.what}: ${minutes.join(', ')}\n`);
      expect(alerts.get(trouble.alert)).toBeLessThanOrEqual(30);
    },
    LONGEST_MS,
  );
});
