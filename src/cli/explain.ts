import { Command } from 'commander';
import type { Explanation } from './explain/describe-explanation.ts';
import { UserError } from './fail.ts';
import {
  type DecidingFlags,
  instantOf,
  settingsAndPolicies,
  tell,
  withSourceFlags,
  withSubjectFlags,
} from './plan/common-flags.ts';

const EXAMPLES = `
Examples:
  $ ebb explain ep-quiet-lake-1
  $ ebb explain ep-quiet-lake-1 --at 2026-12-24T09:00:00+01:00
  $ ebb explain ep-quiet-lake-1 --fleet snapshot.yaml --json

It shows every step in its order: what each policy says, which of them decides the size and which the timeout, what
clamps that, which gate holds the change back, and what comes at the next boundary. Nothing is written.`;

/** `ebb explain COMPUTE`: why a compute has, or should have, what it has. */
export function explainCommand(): Command {
  return withSubjectFlags(withSourceFlags(new Command('explain')))
    .description('show step by step why a compute has, or should have, its size')
    .argument('<COMPUTE>', 'id of the compute, or PROJECT/COMPUTE')
    .option('--json', 'print the steps as JSON')
    .addHelpText('after', EXAMPLES)
    .action(explain);
}

async function explain(name: string, flags: DecidingFlags): Promise<void> {
  const { explanation, aside } = await explanationOf(name, flags);
  tell(aside);
  if (flags.json) {
    const { explanationJson } = await import('./explain/explanation-json.ts');
    process.stdout.write(`${JSON.stringify(explanationJson(explanation), null, 2)}\n`);
    return;
  }
  const [{ describeExplanation }, { colorsOf }] = await Promise.all([
    import('./explain/describe-explanation.ts'),
    import('./plan/colors.ts'),
  ]);
  process.stdout.write(`${describeExplanation(explanation, colorsOf(process.stdout))}\n`);
}

/** The compute is planned together with the others, as a daemon does: they may hold each other back. */
async function explanationOf(name: string, flags: DecidingFlags) {
  const atMs = instantOf(flags.at);
  const { settings, policies } = await settingsAndPolicies(flags);
  const [{ planOnce }, { decide }, { findCompute }] = await Promise.all([
    import('../compose/planning.ts'),
    import('../domain/decide.ts'),
    import('./explain/find-compute.ts'),
  ]);
  const result = await planOnce({ settings, policies, fleetFile: flags.fleet, atMs, mode: 'enforce' });
  if (!result.ok) throw new UserError(result.problem);
  const { plan, situation } = result.value;
  const planned = findCompute(plan.computes, name);
  const { compute, record, nextBoundaryMs } = planned;
  const next =
    nextBoundaryMs === undefined
      ? undefined
      : decide({
          ...{ policies: situation.policies, compute, baseline: record.baseline, holds: situation.holds },
          instantMs: nextBoundaryMs,
        });
  const explanation: Explanation = { atMs: plan.atMs, planned, ...(next && { next }) };
  return { explanation, aside: result.value };
}
