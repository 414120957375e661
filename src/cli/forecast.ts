import { Command } from 'commander';
import { withFilterFlags } from './filter.ts';
import { FLAGS, SELECTED_COMPUTES, withSourceFlags } from './flags.ts';
import type { ForecastFlags } from './forecast/run-forecast.ts';

const EXAMPLES = `
Examples:
  $ ebb forecast                                     the next seven days of the whole fleet
  $ ebb forecast --fleet fleet.yaml --from 2026-03-23 --days 14 --zone Europe/Berlin
  $ ebb forecast 'web-*' --svg week.svg
  $ ebb forecast --json --from 2026-01-01 --to 2027-01-01

It shows what a daemon in enforce mode would set if policies stay as they are. It ignores policies with
"mode: observe", assumes that waiting changes are made immediately (except those that at_most would hold back if all computes
were awake), and does not predict connections, so headroom is not evaluated. CU-hours are a range; the expected value in it is
estimated from the usage of the last weeks: docs/forecast.md.
Prices need the plan of the account: "plan: launch" in ebb.yaml.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

export function forecastCommand(): Command {
  return withFilterFlags(withSourceFlags(new Command('forecast')).option(...FLAGS.live))
    .argument(...SELECTED_COMPUTES)
    .option(...FLAGS.fleet)
    .option(...FLAGS.expectedUsage)
    .option(...FLAGS.timeoutOperations)
    .option(...FLAGS.days)
    .option(...FLAGS.from)
    .option(...FLAGS.to)
    .option(...FLAGS.zone)
    .option('--all', 'each compute, also of many')
    .option('--json', 'print it as JSON, instants in UTC')
    .option('--svg <file>', 'draw the whole time into an SVG file')
    .addHelpText('after', EXAMPLES)
    .action(async (names: string[], flags: ForecastFlags) => {
      const { runForecast } = await import('./forecast/run-forecast.ts');
      await runForecast(names, flags);
    });
}
