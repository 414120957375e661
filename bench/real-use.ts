/** What findings cost and claim on generated databases with the shape of real ones: shown eight weeks, judged on the five weeks after. */
import { findingsOf } from '../src/domain/recommend/recommend.ts';
import { holidaysOf } from '../src/policy/calendars/public-holidays.ts';
import type { DatabaseClass } from '../test/support/real-use.ts';
import { drawRealFleet, type Score, SETTINGS, scoreOf, TIMEOUTS } from '../test/support/real-use-trial.ts';
import { printTable } from './figures.ts';

/** Fleets that nothing was tuned on. EBB_SEED names another first one. */
const FIRST_SEED = Number(process.env.EBB_SEED ?? 7001);
const FLEETS = Number(process.env.EBB_FLEETS ?? 4);

export async function run(): Promise<void> {
  const rows: string[][] = [];
  const savings: Score['savings'] = [];
  let calledUnused = 0;
  for (const kind of ['serverless', 'provisioned'] as const satisfies DatabaseClass[]) {
    const fleet = Array.from({ length: FLEETS }, (_, index) => drawRealFleet(FIRST_SEED + index, kind)).flat();
    for (const now of SETTINGS) {
      const score = scoreOf(fleet, now, (facts) => findingsOf(facts, { holidaysOf }));
      savings.push(...score.savings);
      calledUnused += score.calledUnused;
      const plain = Math.min(...score.plain);
      const ratio = (cost: number) => (cost / score.best).toFixed(3);
      const of = `${TIMEOUTS[score.plain.indexOf(plain)]} s`;
      rows.push([`${kind}, ${now} s`, ratio(score.proposed), ratio(score.today), `${ratio(plain)} (${of})`]);
    }
  }
  printTable(['computes now have', 'proposed ÷ best', 'today ÷ best', 'one timeout for all ÷ best'], rows);
  const kinds = ['all', ...new Set(savings.map(({ kind }) => kind))].sort();
  const of = (kind: string) => savings.filter((one) => kind === 'all' || one.kind === kind);
  printTable(
    ['findings', 'number', 'median error of mid', 'in the range', 'range wider than threefold'],
    kinds.map((kind) => [kind, String(of(kind).length), ...claims(of(kind))]),
  );
  process.stdout.write(`used computes called unused: ${calledUnused}\n`);
}

function claims(savings: Score['savings']): string[] {
  const errors = savings.map(({ mid, truth }) => (mid === truth ? 0 : Math.abs(mid / truth - 1))).sort((a, b) => a - b);
  const share = (test: (one: Score['savings'][number]) => boolean) =>
    `${((100 * savings.filter(test).length) / savings.length).toFixed(0)} %`;
  return [
    `${(100 * (errors[Math.floor(errors.length / 2)] ?? 0)).toFixed(0)} %`,
    share(({ low, high, truth }) => low <= truth + 0.005 && truth <= high + 0.005),
    share(({ low, high }) => (low >= 0 ? high > 3 * low && high > 0 : low < 3 * high)),
  ];
}
