import { Command } from 'commander';
import { withFilterFlags } from './filter.ts';
import { FLAGS, withFormat } from './flags.ts';
import { withAskFlags } from './past/ask-postgres.ts';
import type { ReportFlags } from './report/run-report.ts';

const EXAMPLES = `
Examples:
  $ NEON_API_KEY=… ebb report
  $ ebb report --owner team-web
  $ ebb report --format markdown >> "$GITHUB_STEP_SUMMARY"
  $ ebb report --json | jq '.projects[] | select(.runs_out)'

It needs only a key that may read: no daemon, no policies, no file. The key may be yours, an organization's or that of one
project. It reads the usage of this billing period and the operations of the last 28 days, and wakes no compute.
With --ask-postgres, it also samples for some minutes which clients keep the compute of DATABASE_URL awake (docs/recommend.md).
--owner and --select show projects that have such a compute, each with its whole usage; owners are as in ebb.yaml and policies.
On the free plan each project has 100 CU-hours a period: the report shows the day on which they will be used up, with an 80 % range.
Exit code 0: fine. 3: a project will probably run out before its period ends, for cron and for workflows (docs/report.md has
one). 1: an error, or a part can't be read and nothing that is known runs out.`;

export function reportCommand(): Command {
  const command = withFilterFlags(withAskFlags(new Command('report')))
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl);
  return withFormat(command, 'text', 'json', 'markdown')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: ReportFlags) => {
      const { runReport } = await import('./report/run-report.ts');
      await runReport(flags);
    });
}
