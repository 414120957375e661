import { Command } from 'commander';
import { refusedNotes } from '../app/fleet/read-fleet.ts';
import { writeErrLine, writeJson, writeOut } from './output.ts';
import { type DecidingFlags, settingsAndPolicies } from './plan/common-flags.ts';

type TerraformFlags = Omit<DecidingFlags, 'queueUrl' | 'at'>;

const EXAMPLES = `
Examples:
  $ ebb terraform                                    for the whole fleet; reads the API, so NEON_API_KEY is enough
  $ ebb terraform --fleet fleet.yaml --policies policies/web.yaml
  $ ebb terraform --json | jq -r '.[] | "\\(.compute_id) \\(.ignore_changes | join(" "))"'

For each compute it lists only what the policies that select it may ever change, including policies that only observe.
Terraform can manage a compute without such a policy completely: docs/terraform.md.
Exit code 0: success, even if there is nothing to ignore. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb terraform`: which attributes of which compute a program that keeps a state is to ignore. */
export function terraformCommand(): Command {
  return new Command('terraform')
    .description('print which attributes Terraform should ignore, for each compute that policies change')
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
    import('../domain/policy/compiled-policies.ts'),
    import('./validate/fleet.ts'),
    import('./terraform/ignored.ts'),
    import('./terraform/to-hcl.ts'),
  ]);
  const policies = compilePolicies(set);
  // People know computes by the names of their branches, so they are read whatever policies select by.
  const from = { settings, fleetFile: flags.fleet, selectsByBranch: true, nowMs: Date.now() };
  const { computes, missing, branchNamesRefused } = await readKnownFleet(from);
  const ignored = ignoredOf(computes, policies);
  const printNote = (line: string) => writeErrLine(line);
  for (const line of refusedNotes(policies.selectsByBranch ? branchNamesRefused : [])) printNote(`note: ${line}`);
  for (const line of missing) printNote(`note: left out: ${line}`);
  if (ignored.length === 0)
    printNote('no policy changes size or timeout of any compute: Terraform has nothing to ignore');
  if (flags.json) writeJson(ignoredJson(ignored));
  else if (ignored.length > 0) writeOut(`${hclOf(ignored)}\n`);
  if (missing.length > 0) process.exitCode = 1;
}
