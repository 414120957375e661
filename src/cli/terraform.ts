import { Command } from 'commander';
import { refusedNotes } from '../app/refused-notes.ts';
import type { DecidingFlags } from './plan/common-flags.ts';
import { settingsAndPolicies } from './plan/common-flags.ts';

type TerraformFlags = Omit<DecidingFlags, 'queueUrl' | 'at'>;

const EXAMPLES = `
Examples:
  $ ebb terraform                                    for the whole fleet; asks the API, so NEON_API_KEY will do
  $ ebb terraform --fleet fleet.yaml --policies policies/web.yaml
  $ ebb terraform --json | jq -r '.[] | "\\(.compute_id) \\(.ignore_changes | join(" "))"'

Of each compute it names only what the policies that select it may change at any time; policies that only observe count, too.
A compute without such a policy can stay with Terraform, whole: docs/terraform.md.
Exit code 0: fine, also where there is nothing to ignore. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb terraform`: which attributes of which compute a program that keeps a state is to ignore. */
export function terraformCommand(): Command {
  return new Command('terraform')
    .description('print what Terraform is to leave alone, for each compute that policies change')
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)')
    .option('--policies <paths>', 'files, folders, globs, separated by commas (EBB_POLICIES; default: policies)')
    .option('--fleet <file>', 'a snapshot, YAML or JSON, instead of the live fleet: no key is needed')
    .option('--json', 'print it as JSON')
    .addHelpText('after', EXAMPLES)
    .action(terraform);
}

async function terraform(flags: TerraformFlags): Promise<void> {
  const { settings, policies: set } = await settingsAndPolicies(flags);
  const [{ compilePolicies }, { readKnownFleet }, { ignoredJson, ignoredOf }, { hclOf }] = await Promise.all([
    import('../domain/compiled-policies.ts'),
    import('./validate/fleet.ts'),
    import('./terraform/ignored.ts'),
    import('./terraform/to-hcl.ts'),
  ]);
  const policies = compilePolicies(set);
  // People know computes by the names of their branches, so they are read whatever policies select by.
  const from = { settings, fleetFile: flags.fleet, selectsByBranch: true, nowMs: Date.now() };
  const { computes, missing, branchNamesRefused } = await readKnownFleet(from);
  const ignored = ignoredOf(computes, policies);
  const say = (line: string) => process.stderr.write(`${line}\n`);
  for (const line of refusedNotes(policies.selectsByBranch ? branchNamesRefused : [])) say(`note: ${line}`);
  for (const line of missing) say(`note: left out: ${line}`);
  if (ignored.length === 0) say('no policy changes size or timeout of any compute: Terraform has nothing to ignore');
  if (flags.json) process.stdout.write(`${JSON.stringify(ignoredJson(ignored), null, 2)}\n`);
  else if (ignored.length > 0) process.stdout.write(`${hclOf(ignored)}\n`);
  if (missing.length > 0) process.exitCode = 1;
}
