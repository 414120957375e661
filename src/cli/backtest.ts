import { Command } from 'commander';
import type { BacktestFlags } from './backtest/run-backtest.ts';
import { parseTargets, parseWindows } from './backtest/variants.ts';
import { FLAGS } from './flags.ts';
import { parseDurationSeconds, parseSize, parseSuspendAfter } from './operator/parse-flags.ts';

const EXAMPLES = `
Examples:
  $ ebb backtest --policy web-headroom --connections counts.csv
  $ ebb backtest --policy web-headroom --connections counts.csv --fleet fleet.yaml --targets 60%,70%,80% --windows 15m,1h
  $ ebb backtest --policy web-headroom --prometheus --from 2026-03-02 --to 2026-03-09 ep-shop-1 --svg week.svg

The file has the columns time,compute,connections and, if you have it, max_connections. It is replayed by the engine of
the daemon, once for the policy as written (*), for each alternative, and without the policy. Without --fleet no
other policy is applied, and computes begin at --size. No key is needed, nothing is written. docs/backtest.md says what is assumed.`;

export function backtestCommand(): Command {
  return new Command('backtest')
    .argument('[COMPUTE...]', 'ids of computes, also globs (default: all that were recorded)')
    .requiredOption('--policy <name>', 'the headroom policy')
    .option('--connections <file>', 'CSV: time,compute,connections[,max_connections]')
    .option('--prometheus', "ask the policy's source for what it remembers, instead of a file")
    .option('--source <name>', 'another source from prometheus than that of the policy')
    .option('--from <iso>', 'where the range query starts; without offset local time of --zone')
    .option('--to <iso>', 'where it ends (default: now)')
    .option('--step <duration>', 'its step (default: the interval of the source)', parseDurationSeconds)
    .option('--fleet <file>', 'a snapshot, YAML or JSON: what the computes have, and which other policies select them')
    .option('--size <size>', 'without --fleet: the size at which computes begin (default: 0.25)', parseSize)
    .option('--suspend-after <duration>', 'without --fleet: when they suspend (default: 5m)', parseSuspendAfter)
    .option('--targets <shares>', 'targets to try, e.g. 60%,70%,80%', parseTargets)
    .option('--windows <durations>', 'windows of scale_down to try, e.g. 15m,30m,1h', parseWindows)
    .option(...FLAGS.config)
    .option(...FLAGS.policies)
    .option(...FLAGS.zone)
    .option('--json', 'print it as JSON, instants in UTC')
    .option('--svg <file>', 'draw connections and what the sizes give into an SVG file')
    .addHelpText('after', EXAMPLES)
    .action(async (names: string[], flags: BacktestFlags) => {
      const { runBacktest } = await import('./backtest/run-backtest.ts');
      await runBacktest(names, flags);
    });
}
