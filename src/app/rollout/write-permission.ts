import type { Reason, ReasonCode } from '../../domain/compute/reasons.ts';
import { DECISION_VERSION } from '../../domain/evaluate/decision-version.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import { hasUnloaded, NO_TEAM, teamPart } from '../../domain/policy/team-parts.ts';
import type { Caller } from '../../ports/operator.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import { describeOffset, type StoreClock } from '../group/clock-skew.ts';
import { WRITE_BLOCKS, type WriteBlock } from '../group/leader.ts';
import type { CurrentRules } from '../rules.ts';
import { type ChangeTimes, type DelayedReading, describeDelay } from './delayed-reading.ts';
import type { DisruptionImpact } from './disruption-impact.ts';
import { type CompareGenerationsDeps, compareGenerations, describeNewer, type GenerationState } from './generations.ts';
import { whenDisconnected } from './impact-text.ts';

/** Rules that have been read and are not yet current. */
export interface Candidate {
  /** Rules with the policies of one part of the set: a team's files, or the files that belong to no team. */
  rules: Rules;
  /** Absent until the impact has been counted. */
  impact?: DisruptionImpact;
  /** True if the fleet could not be listed to count the impact; each round tries again. */
  isUncounted?: boolean;
  /** The hash by which a person approves the rules; absent until the impact has been counted. */
  approvalHash?: string;
  /** True once the staging has been logged. */
  isReported?: true;
}

/** The state of one part of the policy set. Parts wait and fail independently. */
export interface PartState {
  candidate: Candidate | undefined;
  /** The problems of the part's files when they were last read. */
  problems: readonly string[];
}

/** The state of this daemon's policy set: generation, staged parts and problems. The rules that decide are in {@link CurrentRules}. */
export interface PolicySets extends PartState, GenerationState {
  /** The state of each team's part. The fields of {@link PartState} here are about the settings and the files that belong to no team. */
  readonly teams: Map<string, PartState>;
  /** False if nothing has to be approved, since the control API is on this machine. */
  readonly stages: boolean;
  /** The hash, or its prefix, of a set that was approved on the command line. */
  readonly accepted: { hash: string; caller: Caller } | undefined;
  /** This daemon's rules, if they wait for approval to replace a generation that no daemon has any more. */
  takeOver: (Candidate & { decisionHash: string }) | undefined;
  /** True if the rules have changed since the fleet was last evaluated. */
  needsReevaluation: boolean;
  /** The last reading, while it waits to be applied. */
  delayed: DelayedReading | undefined;
  /** When files were last changed in place; see `isBeingWritten`. */
  readonly changedAt: ChangeTimes;
}

export function createPolicySets(
  options: Pick<PolicySets, 'stages' | 'accepted'> & { decisionVersion?: number },
): PolicySets {
  return {
    decisionVersion: DECISION_VERSION,
    ...options,
    teams: new Map(),
    generation: undefined,
    newer: undefined,
    newest: undefined,
    isLossLogged: false,
    candidate: undefined,
    takeOver: undefined,
    problems: [],
    needsReevaluation: false,
    delayed: undefined,
    changedAt: new Map(),
  };
}

/** Returns the state of each part with its team, first that of the part that belongs to no team. */
export function partStates(sets: PolicySets): [team: string, state: PartState][] {
  return [[NO_TEAM, sets], ...sets.teams];
}

/** Returns the state of a team's part; creates it if there is none. */
export function stateOf(sets: PolicySets, team: string): PartState {
  if (team === NO_TEAM) return sets;
  const state = sets.teams.get(team) ?? { candidate: undefined, problems: [] };
  sets.teams.set(team, state);
  return state;
}

/** Returns the field `owner` of log lines about a team's part; no field for the part that belongs to no team. */
export function ownerField(team: string): { owner?: string } {
  return team === NO_TEAM ? {} : { owner: team };
}

export interface SetsDeps {
  sets: PolicySets;
  rules: CurrentRules;
}

export interface WritePermissionDeps extends CompareGenerationsDeps, SetsDeps {
  sets: PolicySets;
  mode: Mode;
  storeClock: Pick<StoreClock, 'excessiveOffsetMs'>;
}

export interface WriteBlockDeps {
  sets: PolicySets;
  storeClock: Pick<StoreClock, 'lastExcessiveOffsetMs'>;
}

export interface ShowSetsDeps extends SetsDeps, WriteBlockDeps {
  mode: Mode;
  telemetry: Telemetry;
}

export type WritePermission = { ok: true } | { ok: false; reason: Reason };

/**
 * Checks before each write that this daemon's clock is right, and that its policy set is registered and the newest of its group. Throws if the
 * store can't be read; then nothing may be written either.
 */
export async function checkWritePermission(deps: WritePermissionDeps): Promise<WritePermission> {
  const { mode, storeClock, sets } = deps;
  if (mode === 'observe') return refuse('observe', 'nothing is written in observe mode');
  const offsetMs = await storeClock.excessiveOffsetMs();
  if (offsetMs !== undefined) return refuse('clock_off', `this machine's clock is ${describeOffset(offsetMs)}`);
  if (sets.generation === undefined) return refuse('staged', stagedSets(deps)[0]?.message ?? describeCounting(deps));
  await compareGenerations(deps);
  return sets.newer ? refuse('superseded', describeNewer(deps, sets.newer)) : { ok: true };
}

/** A part of the set that waits for `ebb approve`. */
export interface StagedSet {
  team: string;
  hash: string;
  /** The hash of its policies. */
  setHash: string;
  message: string;
  impact: DisruptionImpact;
}

/** The beginning of the sentence about a team without policies in effect. Stored announcements are recognised by it. */
export const LEFT_ALONE = 'nothing is written to computes of';

/**
 * Describes what is in effect until a newer set is approved, or can be loaded. If no policies of the team were loaded since the start, nothing is
 * written to its computes.
 */
export function staysCurrent({ current: { policies } }: CurrentRules, team: string): string {
  if (team === NO_TEAM) return `${shortHash(policies.set.hash)} stays current`;
  if (hasUnloaded(teamPart(policies.set, team))) return `${LEFT_ALONE} ${team}`;
  return `the current policies of ${team} stay in effect`;
}

/** Returns everything that waits for `ebb approve`, the part that belongs to no team first. */
export function stagedSets({ sets, rules }: SetsDeps): StagedSet[] {
  const candidates = [
    ...partStates(sets).map(([team, { candidate }]) => [team, candidate] as const),
    [NO_TEAM, sets.takeOver] as const,
  ];
  return candidates.flatMap(([team, candidate]) => {
    if (!candidate?.impact) return [];
    const { hash: setHash } = candidate.rules.policies;
    const { approvalHash: hash = setHash } = candidate;
    const { disconnected, computes, unknown = 0 } = candidate.impact;
    const doubt = unknown === 0 ? '' : ` (${unknown} of them unread, so perhaps asleep)`;
    const bySettings = hash === setHash ? '' : ', by other settings or another release,';
    const when = whenDisconnected(candidate.impact);
    const what = `policy set ${shortHash(setHash)}${team === NO_TEAM ? '' : ` of ${team}`}${bySettings}`;
    const isBlocked = sets.generation === undefined || candidate === sets.takeOver;
    const meanwhile = isBlocked ? 'nothing is written' : staysCurrent(rules, team);
    const message = `${what} would disconnect ${disconnected} of ${computes} computes${when}${doubt}: it is staged, and ${meanwhile}; to make it current: ebb approve ${hash}`;
    return [{ team, hash, setHash, message, impact: candidate.impact }];
  });
}

/** Returns the message of the readiness check of policies: which set is current, and what blocks a newer one. */
export function describeSets({ sets, rules, mode }: SetsDeps & { mode: Mode }): string {
  const { policies } = rules.current;
  const notes = [`${policies.set.policies.length} current, set ${shortHash(policies.set.hash)}`];
  notes.push(...stagedSets({ sets, rules }).map(({ message }) => message));
  if (!sets.candidate?.impact && mode === 'enforce' && sets.generation === undefined)
    notes.push(describeCounting({ sets, rules }));
  const newer = describedNewer({ sets, rules });
  if (newer !== undefined) notes.push(newer);
  notes.push(...partStates(sets).flatMap(([team, { problems }]) => problems.slice(0, 1).map(describeBroken(team))));
  return notes.join('; ');
}

/** Returns why the newest policies are not current, apart from staging, one line for each reason. `isShown` selects teams whose files count. */
export function policyProblems({ sets, rules }: SetsDeps, isShown: (team: string) => boolean = () => true): string[] {
  const newer = describedNewer({ sets, rules });
  const delayed = sets.delayed ? [describeDelay(sets.delayed.vanished)] : [];
  const parts = partStates(sets).filter(([team]) => team === NO_TEAM || isShown(team));
  const broken = parts.flatMap(([team, { problems }]) => problems.map(describeBroken(team)));
  const uncounted = parts.flatMap(([team, { candidate }]) =>
    candidate?.isUncounted ? [describeUncounted({ sets, rules }, team, candidate)] : [],
  );
  return [newer ?? [], delayed, broken, uncounted].flat();
}

/** Describes that a newly started daemon waits for the count of its set's impact. */
function describeCounting({ sets, rules }: SetsDeps): string {
  const { candidate } = sets;
  if (candidate?.isUncounted) return describeUncounted({ sets, rules }, NO_TEAM, candidate);
  return 'counting how many computes the policy set would disconnect at once';
}

function describeUncounted({ sets, rules }: SetsDeps, team: string, candidate: Candidate): string {
  const set = `policy set ${shortHash(candidate.rules.policies.hash)}${team === NO_TEAM ? '' : ` of ${team}`}`;
  const meanwhile = sets.generation === undefined ? 'nothing is written' : staysCurrent(rules, team);
  return `${set} was read; it waits until the projects can be listed, to count how many computes it would disconnect; meanwhile ${meanwhile}`;
}

function describedNewer({ sets, rules }: SetsDeps): string | undefined {
  return sets.newer && describeNewer({ sets, rules }, sets.newer);
}

function describeBroken(team: string): (problem: string) => string {
  const ofTeam = team === NO_TEAM ? '' : `${team}: `;
  return (problem) => `${ofTeam}the files as last read are invalid: ${problem}`;
}

/** Returns the last known reason for which an enforcing daemon may not write; undefined if it may. */
export function cannotWrite({ sets, storeClock }: WriteBlockDeps): WriteBlock | undefined {
  if (storeClock.lastExcessiveOffsetMs() !== undefined) return 'clock_off';
  if (sets.generation === undefined) return 'staged';
  return sets.newer ? 'superseded' : undefined;
}

/** Sets the gauges of staged sets, of the reading of policy files, and of reasons for which this daemon may not write. */
export function exportSets(deps: ShowSetsDeps): void {
  const { mode, sets } = deps;
  const { metrics } = deps.telemetry;
  const blocked = mode === 'enforce' ? cannotWrite(deps) : undefined;
  for (const reason of WRITE_BLOCKS) metrics.set('ebb_write_blocked', { reason }, reason === blocked ? 1 : 0);
  const parts = partStates(sets).map(([, state]) => state);
  const changesOf = ({ candidate }: PartState) => candidate?.impact?.disconnected ?? 0;
  const stagedChanges = parts.reduce((sum, part) => sum + changesOf(part), 0);
  metrics.set('ebb_staged_changes', {}, stagedChanges);
  metrics.set('ebb_policy_load_success', {}, parts.every(({ problems }) => problems.length === 0) ? 1 : 0);
  metrics.clear('ebb_team_staged_changes');
  metrics.clear('ebb_team_policy_load_success');
  for (const [owner, state] of sets.teams) {
    metrics.set('ebb_team_staged_changes', { owner }, changesOf(state));
    metrics.set('ebb_team_policy_load_success', { owner }, state.problems.length === 0 ? 1 : 0);
  }
}

function refuse(code: ReasonCode, message: string): WritePermission {
  return { ok: false, reason: { code, message } };
}
