import { Command } from 'commander';
import { withFilterFlags } from './filter.ts';
import { choiceOption, FLAGS, SELECTED_COMPUTES, withSourceFlags } from './flags.ts';
import type { PlanFlags } from './plan/run-plan.ts';

const EXAMPLES = `
Examples:
  $ ebb plan                                         what a daemon in enforce mode would do now
  $ ebb plan 'web-*' --zone Europe/Berlin            of these projects, in times of this zone
  $ ebb plan --owner team-web                        each change of a team; --all: each of all teams
  $ ebb plan --out plan.json                         and then: ebb apply --plan plan.json
  $ ebb plan --live                                  asks the API instead of reading the stored fleet
  $ ebb plan --fleet snapshot.yaml --at 2026-03-02T08:00:00+01:00
  $ ebb plan --json | jq '.computes[] | select(.verdict == "act")'

It plans for enforce mode, whatever mode the settings have. With --mode observe everything waits, as in a daemon
that observes. Nothing is written except the file of --out. More than 40 computes with changes are summed up by team.
Exit code 0: nothing to do. 2: something to do, now or later. 1: an error, or a part of the fleet that can't be read.`;

export function planCommand(): Command {
  const sources = withSourceFlags(new Command('plan'));
  return withFilterFlags(
    sources
      .option(...FLAGS.fleet)
      .option(...FLAGS.at)
      .option(...FLAGS.live),
  )
    .argument(...SELECTED_COMPUTES)
    .addOption(choiceOption('--mode <mode>', 'plan for this mode', ['enforce', 'observe']))
    .option('--usage <file>', 'usage.csv of `ebb usage export`, for the cost (default: what daemons have collected)')
    .option(...FLAGS.timeoutOperations)
    .option('--zone <name>', 'IANA zone of times (default: that of the first window, else UTC)')
    .option('--all', 'each change, also of many computes')
    .option('--json', 'print the plan as JSON, instants in UTC')
    .option('--out <file>', 'write the plan to this file, as JSON, for ebb apply --plan')
    .addHelpText('after', EXAMPLES)
    .action(async (names: string[], flags: PlanFlags) => {
      const { runPlan } = await import('./plan/run-plan.ts');
      await runPlan(names, flags);
    });
}
