import { printable } from '../../common/safe-text.ts';
import { type AccountFacts, type AccountPromise, promisesOf } from '../../domain/compute/account-facts.ts';
import { FIELD_GROUPS } from '../../domain/compute/compute.ts';
import { formatChange, formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { Decision } from '../../domain/decide/decide.ts';
import { describeStep, describeValue, stepJson, type TraceStep } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import {
  desiredJson,
  fieldsJson,
  plannedComputeJson,
  settingsJson,
  wantedSettings,
} from '../../domain/evaluate/fleet-plan-json.ts';
import { unknownBefore } from '../../domain/evaluate/trials.ts';
import { describeWatch } from '../../domain/guards/state.ts';
import { floorViews, type GuardFacts, guardsJson, guardViews } from '../../domain/notifications/guards-of-compute.ts';
import { describeFinding } from '../../domain/notifications/of-record.ts';
import type { Freeze } from '../../domain/overrides/freezes.ts';
import { describeFields, fieldNameOf } from '../../domain/plan/manual-changes.ts';
import { withoutNotLoaded } from '../../domain/policy/team-parts.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { ageText } from '../../domain/time/age.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { type NotPlanned, notPlannedJson, unreadText } from '../not-planned.ts';
import { describeReason, nameOf } from '../plan/describe-plan.ts';
import type { Colors } from '../terminal.ts';

export interface Explanation {
  atMs: number;
  planned: EvaluatedCompute;
  /** The decision at the next boundary, if there is one. */
  next?: Decision;
  /** The decision at the next change, if there is one. */
  change?: Decision;
  /** People's freezes that cover the compute now; absent if there are none. */
  freezes?: readonly Freeze[];
  /** The measured facts about its account. */
  verified?: AccountFacts | undefined;
  /** Absent if guards are not explained. */
  guards?: GuardFacts;
  /** Its team, if the policy files of that team can't be read. */
  notPlanned?: readonly NotPlanned[];
  /** True if a daemon is known to run. */
  hasDaemon?: boolean;
}

export function describeExplanation({ atMs, planned, verified, ...facts }: Explanation, colors: Colors): string {
  const { compute, record, decision, plan } = planned;
  const { notPlanned = [], hasDaemon = false } = facts;
  const isUnread = notPlanned.length > 0;
  const overview = [
    colors.bold(`${nameOf(compute)} at ${isoInstant(atMs)}`),
    `  state     ${compute.state}${compute.disabled ? ', disabled' : ''}, ${compute.type}, branch ${printable(compute.branchName ?? compute.branchId)}`,
    `  has       ${describeSettings(compute.minCu, compute.maxCu, compute.suspendTimeoutSeconds)}`,
    `  wanted    ${isUnread ? 'not known' : describeWanted(wantedSettings(decision, compute))}`,
    `  baseline  ${describeSettings(record.baseline.minCu, record.baseline.maxCu, record.baseline.suspendTimeoutSeconds)}`,
    ...baselineChanges(record).map(
      ([group, { seenAtMs, before }]) =>
        `  baseline  ${fieldNameOf(group)} was ${describeFields(group, before)} until somebody else changed it, first seen at ${isoInstant(seenAtMs)}`,
    ),
    ...notPlanned.flatMap(({ team, problem }) => [
      printable(`  team      ${team}: what it wants is not known: ${unreadText(problem)}`),
      `  daemon    ${hasDaemon ? LAST_READ : WITHOUT_DAEMON}`,
    ]),
    ...keptBy(planned, facts.freezes).map(keptLine),
    ...stoppedTrials(record).map(
      ({ trial, at }) => `  trial     ${trial} was stopped at ${at}: its policies apply again`,
    ),
    ...Object.entries(record.trials ?? {}).flatMap(([trial, stored]) =>
      stored.baseline === null ? [`  trial     ${trial} leaves it out: ${unknownBefore(stored)}`] : [],
    ),
  ];
  // A policy that could not be read may set the field.
  const trace = decision.trace.filter(({ code }) => !(isUnread && code === 'no_value'));
  const guards = facts.guards ? guardStateLines(planned, facts.guards) : [];
  const sections = [
    overview,
    stepsOf('Size', trace, 'size', colors),
    stepsOf('Scale to zero', trace, 'suspend_timeout', colors),
    [
      isUnread && plan.verdict === 'none' ? colors.bold('Not known') : verdictLine(plan.verdict, colors),
      ...reasonLines(plan, colors),
      ...promisesFor(planned, verified).map(
        (one) => `  ${one.verified ? 'verified' : 'assumed'}: ${one.promise} (${one.fact})`,
      ),
    ],
    guards.length > 0 ? [colors.bold('Guards'), ...guards] : [],
    isUnread ? [`${colors.bold('Next boundary')} not known`] : nextLines(planned, facts, colors),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

const LAST_READ =
  'goes on with the last version of these files that it could read; its page of the compute shows what that wants';
const WITHOUT_DAEMON =
  'none is known to run; one goes on with the last version that it could read, or else changes nothing of the team';

/** The field groups whose baseline somebody else has changed, with that change. */
function baselineChanges({ baselineChanges: changes = {} }: ComputeRecord) {
  return FIELD_GROUPS.flatMap((group) => (changes[group] ? [[group, changes[group]] as const] : []));
}

/** The trials of the compute that were ended early because of their cost. */
function stoppedTrials({ trials = {} }: ComputeRecord): { trial: string; at: string }[] {
  return Object.entries(trials).flatMap(([trial, { stoppedAtMs }]) =>
    stoppedAtMs === undefined ? [] : [{ trial, at: isoInstant(stoppedAtMs) }],
  );
}

function stepsOf(title: string, trace: readonly TraceStep[], group: TraceStep['group'], colors: Colors): string[] {
  const steps = trace.filter((step) => step.group === group);
  if (steps.length === 0) return [];
  return [colors.bold(title), ...steps.map((step) => `  ${stepLine(step, colors)}`)];
}

/** Steps that decide stand out; those without effect are dim. */
function stepLine(step: TraceStep, colors: Colors): string {
  const { before, after, code } = step;
  const isFirstValue = (before === undefined || before === null) && after !== undefined && after !== null;
  const result = isFirstValue ? `: ${describeValue(after)}` : '';
  const mode = (step.policy ?? step.proposal?.policy)?.mode === 'observe' ? ', only observes' : '';
  const line = printable(`${describeStep(step)}${mode}${result}`);
  return after === undefined
    ? colors.dim(`- ${line} [${code}]`)
    : `${colors.green('*')} ${line} ${colors.dim(`[${code}]`)}`;
}

function verdictLine(verdict: EvaluatedCompute['plan']['verdict'], colors: Colors): string {
  const words = { act: 'To change now', wait: 'To change, but not now', none: 'Nothing to change' };
  return colors.bold(words[verdict]);
}

function reasonLines({ why, waiting }: EvaluatedCompute['plan'], colors: Colors): string[] {
  return [
    ...why.map((reason) => `  ${describeReason(reason, colors)}`),
    ...waiting.flatMap(({ why: wanted, gate }) => [
      `  ${describeReason(wanted, colors)}`,
      `  ${colors.yellow('waits: ')}${describeReason(gate, colors)}`,
    ]),
  ];
}

/** The promises that hold for the planned changes, each with the fact about the account on which it depends. */
function promisesFor({ compute, plan: { actions } }: EvaluatedCompute, verified: AccountFacts = {}): AccountPromise[] {
  const fields = actions.find(({ kind }) => kind === 'update')?.fields;
  const isResized = fields?.maxCu !== undefined;
  const isAsleep = compute.state === 'idle';
  return promisesOf(verified).filter(
    ({ fact }) =>
      (fact === 'idle_resize' && isResized && isAsleep) ||
      (fact === 'timeout_change' && fields !== undefined && !isResized && !isAsleep),
  );
}

/** The guards, the finding and the floors of a compute as lines of text. */
function guardStateLines(evaluated: EvaluatedCompute, facts: GuardFacts): string[] {
  const { compute, record } = evaluated;
  const verdicts = guardViews(evaluated, facts).flatMap(({ guard, verdict, watch }) => {
    const age = verdict.atMs === undefined ? '' : ` (${ageText(verdict.atMs, facts.atMs)})`;
    const watched = watch ? [`  watched   by ${guard.name} ${describeWatch(watch, guard.watchMs)}`] : [];
    return [`  ${guard.name}  ${verdict.state}: ${verdict.message}${age}`, ...watched];
  });
  const { guardFinding } = record;
  const found = guardFinding ? [`  found     ${describeFinding(compute, guardFinding, 'later')}`] : [];
  const floors = floorViews(evaluated, facts);
  const floorLines = floors.map((floor) => {
    const { guard, sinceMs, fields, lowered, policy, isInEffect, endMs } = floor;
    const end = endMs === undefined ? `until ${policy} changes` : `until ${isoInstant(endMs)}, or ${policy} changes`;
    const change = formatChange({ ...compute, ...lowered }, fields);
    const effect = isInEffect ? '' : '; it changes nothing now';
    return `  floor     ${change} since ${isoInstant(sinceMs)}, by guard ${guard}, which was bad after ${policy} had lowered it; ${end}${effect}`;
  });
  const release = floors.length > 0 ? [`  to lower it again now: ebb release ${compute.computeId} --guard`] : [];
  return [...verdicts, ...found, ...floorLines, ...release].map(printable);
}

/** A line about the next boundary. If a person or a freeze keeps the compute unchanged there, a second line tells the next change. */
function nextLines(
  { compute, nextBoundaryMs, nextChangeMs, searchedUntilMs }: EvaluatedCompute,
  { next, change }: Pick<Explanation, 'next' | 'change'>,
  colors: Colors,
): string[] {
  const line = (title: string, atMs: number | undefined, future: Decision | undefined) => {
    if (atMs === undefined || future === undefined) {
      const none = searchedUntilMs === undefined ? 'none in sight' : `none before ${isoInstant(searchedUntilMs)}`;
      return `${colors.bold(title)} ${none}`;
    }
    const ready = Object.values(future.deciders).find(({ proposal }) => proposal?.wave);
    const why = ready ? `; ${describeStep(ready)}` : '';
    return `${colors.bold(title)} ${isoInstant(atMs)}: ${describeWanted(wantedSettings(future, compute))}${why}`;
  };
  if (nextChangeMs === nextBoundaryMs) return [line('Next boundary', nextBoundaryMs, next)];
  const boundary =
    nextBoundaryMs === undefined ? [] : [`${line('Next boundary', nextBoundaryMs, next)}; kept as it is then`];
  return [...boundary, line('Next change', nextChangeMs, change)];
}

/** A freeze, or a hold that keeps the compute as it is. */
interface KeptBy {
  kind: 'freeze' | 'hold';
  policy?: string;
  owner?: string;
  reason?: string;
  untilMs?: number | undefined;
  allowRaise: boolean;
}

/** The freezes and holds that keep the compute as it is now, even if nothing is to change. */
function keptBy({ decision }: EvaluatedCompute, freezes: readonly Freeze[] = []): KeptBy[] {
  return [
    ...freezes.map(({ owner, reason, expiresAtMs, allowRaise }): KeptBy => {
      return { kind: 'freeze', owner, reason, untilMs: expiresAtMs, allowRaise };
    }),
    ...withoutNotLoaded(decision.freezes).map(({ policy, untilMs, allowRaise }): KeptBy => {
      return { kind: 'freeze', policy: policy.name, untilMs, allowRaise };
    }),
    ...decision.holds
      .filter(({ freeze }) => freeze)
      .map(({ owner, reason, expiresAtMs }): KeptBy => {
        return { kind: 'hold', owner, reason, untilMs: expiresAtMs, allowRaise: false };
      }),
  ];
}

function keptLine({ kind, policy, owner, reason, untilMs, allowRaise }: KeptBy): string {
  const title = kind === 'freeze' ? 'frozen    by' : 'held      as it is by';
  const until = untilMs === undefined ? '' : ` until ${isoInstant(untilMs)}`;
  const raises = allowRaise ? ', except for raises' : '';
  const why = reason === undefined ? '' : `: ${reason}`;
  return printable(`  ${title} ${policy ?? owner}${until}${raises}${why}`);
}

function keptJson({ untilMs, allowRaise, ...by }: KeptBy): object {
  return { ...by, until: untilMs === undefined ? null : isoInstant(untilMs), allow_raise: allowRaise };
}

function describeWanted({ size, suspendTimeoutSeconds }: ReturnType<typeof wantedSettings>): string {
  const timeout = suspendTimeoutSeconds === null ? 'as it is' : formatSuspendTimeout(suspendTimeoutSeconds);
  return `size ${size === null ? 'as it is' : `${formatSize(size)} CU`}, suspend_after ${timeout}`;
}

function describeSettings(minCu: number, maxCu: number, seconds: number): string {
  return `size ${formatSize({ minCu, maxCu })} CU, suspend_after ${formatSuspendTimeout(seconds)}`;
}

/**
 * An entry of `ebb plan --json`, with the instant, the baseline, every step and the next boundary. If `rests_on` is absent, all facts are assumed.
 */
export function explanationJson({ atMs, planned, next, change, verified = {}, ...facts }: Explanation): object {
  const { guards: _guardsOfPlan, ...entry } = plannedComputeJson(planned);
  const { compute, record, decision, nextBoundaryMs, nextChangeMs } = planned;
  const at = (ms: number | undefined, future: Decision | undefined) =>
    ms === undefined || future === undefined ? null : { at: isoInstant(ms), desired: desiredJson(future, compute) };
  const kept = keptBy(planned, facts.freezes);
  const stopped = stoppedTrials(record);
  const changed = baselineChanges(record);
  return {
    at: isoInstant(atMs),
    ...entry,
    baseline: settingsJson(record.baseline),
    ...(changed.length > 0 && {
      baseline_changes: changed.map(([group, { seenAtMs, before }]) => ({
        group,
        seen_at: isoInstant(seenAtMs),
        before: fieldsJson(before),
      })),
    }),
    ...(stopped.length > 0 && { stopped_trials: stopped }),
    trace: decision.trace.map(stepJson),
    ...(facts.guards && guardsJson(planned, facts.guards)),
    next_boundary: at(nextBoundaryMs, next),
    next_change: at(nextChangeMs, change),
    ...(kept.length > 0 && { kept_by: kept.map(keptJson) }),
    ...notPlannedJson(facts.notPlanned ?? []),
    ...(facts.notPlanned?.length && {
      desired_known: false,
      daemon_uses: facts.hasDaemon ? 'last_version_read' : null,
    }),
    ...(Object.keys(verified).length > 0 && { rests_on: promisesFor(planned, verified) }),
  };
}
