import { Command } from 'commander';
import type { Planning } from '../compose/planning.ts';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import type { Explanation } from './explain/describe-explanation.ts';
import { UserError } from './fail.ts';
import { writeJson, writeOut } from './output.ts';
import {
  type DecidingFlags,
  instantOf,
  printAsides,
  settingsAndPolicies,
  withSourceFlags,
  withSubjectFlags,
} from './plan/common-flags.ts';

const EXAMPLES = `
Examples:
  $ ebb explain ep-quiet-lake-1
  $ ebb explain ep-quiet-lake-1 --at 2026-12-24T09:00:00+01:00
  $ ebb explain ep-quiet-lake-1 --fleet snapshot.yaml --json

It shows every step in order: what each policy asks for, which one decides size and timeout, which limits apply,
which gate blocks the change, and the values at the next boundary. Nothing is written.`;

/** `ebb explain COMPUTE`: why a compute has, or should have, what it has. */
export function explainCommand(): Command {
  return withSubjectFlags(withSourceFlags(new Command('explain')))
    .description('show step by step why a compute has, or should have, its size')
    .argument('<COMPUTE>', 'id of the compute, PROJECT/COMPUTE, or a project that has only one')
    .option('--json', 'print the steps as JSON')
    .addHelpText('after', EXAMPLES)
    .action(explain);
}

async function explain(name: string, flags: DecidingFlags): Promise<void> {
  const { explanation, aside } = await explanationOf(name, flags);
  printAsides(aside);
  if (flags.json) {
    const { explanationJson } = await import('./explain/describe-explanation.ts');
    writeJson(explanationJson(explanation));
    return;
  }
  const [{ describeExplanation }, { colorsOf }] = await Promise.all([
    import('./explain/describe-explanation.ts'),
    import('./terminal.ts'),
  ]);
  writeOut(`${describeExplanation(explanation, colorsOf(process.stdout))}\n`);
}

/** What a person must know who sees a restart that was planned for one project alone. */
function atOnceNote(computes: readonly EvaluatedCompute[]): string[] {
  const names = computes.flatMap(({ plan }) =>
    plan.actions.flatMap(({ disconnects, policy }) => (disconnects ? [policy] : [])),
  );
  return [...new Set(names)].map(
    (policy) => `only this project was read: how many others ${policy} restarts now (at_once) is in ebb plan`,
  );
}

/** Where its project is named, or what is stored tells it, only that is read. */
async function explanationOf(name: string, flags: DecidingFlags) {
  const atMs = instantOf(flags.at);
  const { settings, policies } = await settingsAndPolicies(flags);
  const [{ planOnce }, { decide }, { findCompute }, { withProgress }] = await Promise.all([
    import('../compose/planning.ts'),
    import('../domain/decide/decide.ts'),
    import('./explain/find-compute.ts'),
    import('./past/progress.ts'),
  ]);
  const options = { settings, policies, fleetFile: flags.fleet, atMs, mode: 'enforce' } as const;
  const [project, second] = name.split('/');
  const compute = second === undefined ? name : undefined;
  const wanted = { compute: second ?? name, ...(second !== undefined && { project }) };
  const first = await withProgress(({ fleet }) => planOnce({ ...options, ...wanted, onProgress: fleet }));
  const isThere = ({ plan: { computes } }: Planning) => computes.some((one) => one.compute.computeId === compute);
  // What is stored may name a project that the compute is no longer in, and a name may be of a compute or of a project.
  const serves = first.ok
    ? compute === undefined || first.value.project === undefined || isThere(first.value)
    : compute !== undefined;
  const result = serves ? first : await withProgress(({ fleet }) => planOnce({ ...options, onProgress: fleet }));
  if (!result.ok) throw new UserError(result.problem);
  const { plan, situation, project: alone } = result.value;
  const planned = findCompute(plan.computes, name);
  const { compute: found, record, nextBoundaryMs } = planned;
  const next =
    nextBoundaryMs === undefined
      ? undefined
      : decide({
          ...{
            policies: situation.policies,
            compute: found,
            baseline: record.baseline,
            trials: record.trials,
            holds: situation.holds,
          },
          instantMs: nextBoundaryMs,
        });
  const explanation: Explanation = { atMs: plan.atMs, planned, ...(next && { next }) };
  const notes = alone === undefined ? [] : atOnceNote([planned]);
  return { explanation, aside: { ...result.value, notes: [...result.value.notes, ...notes] } };
}
