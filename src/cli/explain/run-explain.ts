import leven from 'leven';
import type { PlanResult, UnreadProject } from '../../app/situation/plan.ts';
import { firstNames, severalComputes } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import { planOnce } from '../../compose/situation.ts';
import { decide } from '../../domain/decide/decide.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { freezesAt } from '../../domain/overrides/freezes.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import type { TeamScope } from '../../domain/policy/team-parts.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { orFail, UserError } from '../fail.ts';
import type { CommonFlags } from '../flags.ts';
import { readAt } from '../forecast/span.ts';
import { missingJson, splitPlanned } from '../not-planned.ts';
import { type ReadPolicies, settingsAndPolicies } from '../or-fail.ts';
import { shortened, writeJson, writeNotes, writeOut } from '../output.ts';
import { withProgress } from '../past/progress.ts';
import { writePlanNotes } from '../plan/run-plan.ts';
import { approvalJson, approvalsNeeded, withApproval } from '../plan/staged.ts';
import { colorsOf } from '../terminal.ts';
import { describeExplanation, type Explanation, explanationJson } from './describe-explanation.ts';

export async function runExplain(name: string, flags: CommonFlags): Promise<void> {
  const { broken, set, teams, ...planned } = await planFor(name, flags);
  const evaluated = findOrNote(name, planned);
  const { notPlanned } = splitPlanned([evaluated], [planned.policies], broken);
  const hasDaemon = planned.modes.length > 0;
  const explanation = { ...explanationOf(evaluated, planned), notPlanned, hasDaemon };
  const isOneProject = planned.project !== undefined;
  writePlanNotes({ ...planned, notes: [...planned.notes, ...(isOneProject ? atOnceNotes(evaluated) : [])] });
  const approval = approvalsNeeded([evaluated], { staged: planned.staged, policies: set, teams }).get(evaluated);
  if (flags.json) {
    writeJson({ ...explanationJson(explanation), ...approvalJson(approval), ...missingJson(planned.missing) });
    return;
  }
  const shown = { ...explanation, planned: withApproval(evaluated, approval) };
  writeOut(`${describeExplanation(shown, colorsOf(process.stdout))}\n`);
}

/** A plan to explain, with the policies and teams of the files. */
interface PlanToExplain extends PlanResult, Pick<ReadPolicies, 'broken'> {
  set: PolicySet;
  teams: readonly TeamScope[];
}

/** Plans for one project alone if the name contains it, or if the store knows the project of the compute; otherwise for the fleet. */
async function planFor(name: string, flags: CommonFlags): Promise<PlanToExplain> {
  const atMs = readAt(flags.at);
  const { settings, policies, broken } = await settingsAndPolicies(flags);
  const { fleet: fleetFile, live } = flags;
  const options = { settings, policies, fleetFile, live, atMs, mode: 'enforce' } as const;
  const [project, second] = name.split('/');
  const compute = second === undefined ? name : undefined;
  const subject = { compute: second ?? name, ...(second !== undefined && { project }) };
  const first = await withProgress(({ fleet }) => planOnce({ ...options, ...subject, onProgress: fleet }));
  const isThere = ({ plan: { computes } }: PlanResult) =>
    computes.some(({ compute: { computeId, projectId, projectName } }) =>
      [computeId, projectId, projectName].includes(name),
    );
  // The whole fleet is planned if the project that the store names lacks the compute, or if the project of PROJECT/COMPUTE can't be planned alone.
  const isAnswer = first.ok
    ? compute === undefined || first.value.project === undefined || isThere(first.value)
    : compute !== undefined;
  const found = isAnswer
    ? orFail(first)
    : orFail(await withProgress(({ fleet }) => planOnce({ ...options, onProgress: fleet })));
  return { ...found, broken, set: policies, teams: settings.teams };
}

function explanationOf(planned: EvaluatedCompute, { plan, situation }: PlanResult): Explanation {
  const { compute, record, nextBoundaryMs, nextChangeMs } = planned;
  const { policies, holds } = situation;
  const verified = situation.verified?.get(compute.account);
  const guards = { policies, states: situation.guardStates?.get(compute.computeId), atMs: plan.atMs };
  const freezes = freezesAt(situation.freezes ?? [], compute, plan.atMs);
  const decisionAt = (instantMs: number) => decide({ policies, compute, ...decidingFacts(record), holds, instantMs });
  return {
    atMs: plan.atMs,
    planned,
    verified,
    guards,
    freezes,
    ...(nextBoundaryMs !== undefined && { next: decisionAt(nextBoundaryMs) }),
    ...(nextChangeMs !== undefined && { change: decisionAt(nextChangeMs) }),
  };
}

/** Notes that restarts were planned for one project alone, so that the limit `at_once` was not applied to the whole fleet. */
function atOnceNotes({ plan }: EvaluatedCompute): string[] {
  const names = plan.actions.flatMap(({ disconnects, policy }) => (disconnects ? [policy] : []));
  return [...new Set(names)].map(
    (policy) => `only this project was read: how many others ${policy} restarts now (at_once) is in ebb plan`,
  );
}

/** Finds the compute. If there is none, prints the notes before the error: the fleet may have changed since it was read. */
function findOrNote(name: string, { plan, notes, unread }: PlanResult): EvaluatedCompute {
  try {
    return findCompute(plan.computes, name, unread);
  } catch (error) {
    writeNotes({ notes });
    throw error;
  }
}

const MAX_NAMED = 3;
const LONGEST_NAME = 128;

/**
 * Finds the compute with this id or `PROJECT/COMPUTE`, or the only compute of this project. Throws a UserError with the nearest ids, or with
 * the reason why the project can't be read.
 */
export function findCompute(
  computes: readonly EvaluatedCompute[],
  name: string,
  unread: readonly UnreadProject[] = [],
): EvaluatedCompute {
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
  const unreadProject = unread.find((one) => [one.projectId, one.name].includes(project ?? name));
  if (unreadProject) throw new UserError(printable(`${project ?? name} can't be read now: ${unreadProject.problem}`));
  const shown = printable(shortened(name, LONGEST_NAME));
  const names = new Set(
    computes.flatMap(({ compute: { computeId, projectName } }) =>
      project !== undefined ? [computeId] : [computeId, projectName],
    ),
  );
  const near = nearest([...names], id).join(', ');
  const others = names.size === 0 ? ': the fleet is empty' : `; the nearest of ${computes.length}: ${near}`;
  if (unread.length === 0) throw new UserError(`there is no compute ${shown}${others}`);
  const [problem, ...more] = new Set(unread.map((one) => one.problem));
  const where = `${firstNames(unread.map((one) => one.name))}, not read now${more.length > 0 ? '' : `: ${problem}`}`;
  throw new UserError(`there is no compute ${shown} in what can be read${others}; it may be in ${printable(where)}`);
}

function nearest(names: readonly string[], wanted: string): string[] {
  const text = wanted.slice(0, LONGEST_NAME);
  const ranked = names.map((name) => ({ name, distance: leven(name, text) }));
  return ranked
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, MAX_NAMED)
    .map(({ name }) => name);
}
