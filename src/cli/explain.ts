import { Command } from 'commander';
import leven from 'leven';
import type { PlanResult } from '../app/situation/plan.ts';
import { severalComputes } from '../common/names.ts';
import { printable } from '../common/safe-text.ts';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import { decidingFacts } from '../domain/records/compute-record.ts';
import type { Explanation } from './explain/describe-explanation.ts';
import { UserError } from './fail.ts';
import { withLiveFlag } from './live-flag.ts';
import { shortened, writeJson, writeOut } from './output.ts';
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
  $ ebb explain ep-quiet-lake-1 --live

It shows every step in order: what each policy asks for, which one decides size and timeout, which limits apply,
which gate blocks the change, and the values at the next boundary. Nothing is written.`;

/** `ebb explain COMPUTE`: why a compute has, or should have, its size and timeout. */
export function explainCommand(): Command {
  return withLiveFlag(withSubjectFlags(withSourceFlags(new Command('explain'))))
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

/** A restart was planned for one project alone, so the limit `at_once` was not applied to the whole fleet. */
function atOnceNote(computes: readonly EvaluatedCompute[]): string[] {
  const names = computes.flatMap(({ plan }) =>
    plan.actions.flatMap(({ disconnects, policy }) => (disconnects ? [policy] : [])),
  );
  return [...new Set(names)].map(
    (policy) => `only this project was read: how many others ${policy} restarts now (at_once) is in ebb plan`,
  );
}

/** If the name or the store tells the project, only that project is read. */
async function explanationOf(name: string, flags: DecidingFlags) {
  const atMs = instantOf(flags.at);
  const { settings, policies } = await settingsAndPolicies(flags);
  const [{ planOnce }, { decide }, { withProgress }] = await Promise.all([
    import('../compose/situation.ts'),
    import('../domain/decide/decide.ts'),
    import('./past/progress.ts'),
  ]);
  const { fleet: fleetFile, live } = flags;
  const options = { settings, policies, fleetFile, live, atMs, mode: 'enforce' } as const;
  const [project, second] = name.split('/');
  const compute = second === undefined ? name : undefined;
  const wanted = { compute: second ?? name, ...(second !== undefined && { project }) };
  const first = await withProgress(({ fleet }) => planOnce({ ...options, ...wanted, onProgress: fleet }));
  const isThere = ({ plan: { computes } }: PlanResult) => computes.some((one) => one.compute.computeId === compute);
  // The store may name a project that the compute has left, and a name may be of a compute or of a project.
  const serves = first.ok
    ? compute === undefined || first.value.project === undefined || isThere(first.value)
    : compute !== undefined;
  const result = serves ? first : await withProgress(({ fleet }) => planOnce({ ...options, onProgress: fleet }));
  if (!result.ok) throw new UserError(result.problem);
  const { plan, situation, project: alone } = result.value;
  const planned = findOrNote(name, result.value);
  const { compute: found, record, nextBoundaryMs } = planned;
  const next =
    nextBoundaryMs === undefined
      ? undefined
      : decide({
          policies: situation.policies,
          compute: found,
          ...decidingFacts(record),
          holds: situation.holds,
          instantMs: nextBoundaryMs,
        });
  const verified = situation.verified?.get(found.account);
  const explanation: Explanation = { atMs: plan.atMs, planned, verified, ...(next && { next }) };
  const notes = alone === undefined ? [] : atOnceNote([planned]);
  return { explanation, aside: { ...result.value, notes: [...result.value.notes, ...notes] } };
}

/** Finds the compute. If there is none, the notes come before the error: the fleet may have changed since it was read. */
function findOrNote(name: string, { plan, notes }: PlanResult): EvaluatedCompute {
  try {
    return findCompute(plan.computes, name);
  } catch (error) {
    printAsides({ notes, missing: [] });
    throw error;
  }
}

const MOST_NAMED = 3;
const LONGEST_NAME = 128;

/** The compute with that id or `PROJECT/COMPUTE`, or the only one of a project with that id or name. Throws a UserError with the nearest ids if there is none. */
export function findCompute(computes: readonly EvaluatedCompute[], name: string): EvaluatedCompute {
  const [id = '', project] = name.split('/').toReversed();
  const found = computes.find(
    ({ compute }) =>
      compute.computeId === id &&
      (project === undefined || compute.projectId === project || compute.projectName === project),
  );
  if (found) return found;
  const ofProject = computes.filter(({ compute }) => compute.projectId === name || compute.projectName === name);
  if (ofProject.length > 1) {
    const choice = severalComputes(
      name,
      ofProject.map(({ compute }) => compute.computeId),
    );
    throw new UserError(printable(choice));
  }
  if (ofProject[0]) return ofProject[0];
  const shown = printable(shortened(name, LONGEST_NAME));
  const ids = computes.map(({ compute }) => compute.computeId);
  if (ids.length === 0) throw new UserError(`there is no compute ${shown}: the fleet is empty`);
  throw new UserError(`there is no compute ${shown}; the nearest of ${ids.length}: ${nearest(ids, id).join(', ')}`);
}

function nearest(ids: readonly string[], wanted: string): string[] {
  const text = wanted.slice(0, LONGEST_NAME);
  const ranked = ids.map((id) => ({ id, distance: leven(id, text) }));
  return ranked
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, MOST_NAMED)
    .map(({ id }) => id);
}
