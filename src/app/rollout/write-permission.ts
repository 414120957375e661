import type { Reason, ReasonCode } from '../../domain/compute/reasons.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Generation, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Mode } from '../evaluate/evaluate.ts';
import { describeOffset, type StoreClock } from '../group/clock-skew.ts';
import type { WriteBlock } from '../group/leader.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import type { CurrentRules } from '../rules.ts';
import type { DisruptionImpact } from './disruption-impact.ts';

/** Rules that have been read and are not yet current. */
export interface Candidate {
  rules: Rules;
  /** Absent until its impact has been counted. */
  impact?: DisruptionImpact;
  /** What vanished with it, while its files may still be being written: it counts once they have not changed for a while. */
  delay?: { vanished: readonly string[]; sinceMonotonicMs: number };
  /** That it is staged has been said. */
  isReported?: true;
}

/** Which policy set counts here, and which one waits. The one that is decided by is in {@link CurrentRules}. */
export interface PolicySets {
  /** False where nothing has to be approved: the control API is on this machine. */
  readonly stages: boolean;
  /** The hash of a set that may become current without another word, or its beginning. */
  readonly accepted: string | undefined;
  /** Number of the set that is decided by; undefined while nothing may be written by it. */
  generation: number | undefined;
  /** The one that another daemon has made current since. */
  newer: Generation | undefined;
  candidate: Candidate | undefined;
  /** What was wrong with the rules when they were last read. */
  problems: readonly string[];
  /** Other rules are current, and what follows from them is not yet all done. */
  needsReevaluation: boolean;
}

export function createPolicySets(options: Pick<PolicySets, 'stages' | 'accepted'>): PolicySets {
  return {
    ...options,
    generation: undefined,
    newer: undefined,
    candidate: undefined,
    problems: [],
    needsReevaluation: false,
  };
}

/** A set in which something vanished counts once nobody has changed it for so long, in real milliseconds. */
export const DELAY_MS = 10_000;

/** What tells which policy set is current, and which one waits. */
export interface SetsDeps {
  sets: PolicySets;
  rules: CurrentRules;
}

export interface CompareGenerationsDeps extends SetsDeps {
  store: Pick<Store, 'generation'>;
  storeWatch: StoreWatch;
  telemetry: Telemetry;
}

export interface WritePermissionDeps extends CompareGenerationsDeps {
  mode: Mode;
  storeClock: Pick<StoreClock, 'tooFarOff'>;
}

export interface WriteBlockDeps {
  sets: PolicySets;
  storeClock: Pick<StoreClock, 'wasTooFarOff'>;
}

export interface ShowSetsDeps extends SetsDeps, WriteBlockDeps {
  mode: Mode;
  telemetry: Telemetry;
}

/** Permission to write to any compute, or why there is none. */
export type WritePermission = { ok: true } | { ok: false; reason: Reason };

/**
 * Asked before each write: whether this daemon's clock is right, and its policy set current and the newest of its group. Throws
 * if the store can't be asked: then nothing may be written either.
 */
export async function checkWritePermission(deps: WritePermissionDeps): Promise<WritePermission> {
  const { mode, storeClock, sets } = deps;
  if (mode === 'observe') return refuse('observe', 'nothing is written in observe mode');
  const offsetMs = await storeClock.tooFarOff();
  if (offsetMs !== undefined) return refuse('clock_off', `this machine's clock is ${describeOffset(offsetMs)}`);
  if (sets.generation === undefined) return refuse('staged', stagedSet(deps)?.message ?? NOT_MEASURED);
  await compareGenerations(deps);
  return sets.newer ? refuse('superseded', describeNewer(sets.newer)) : { ok: true };
}

/** The generation that this daemon decides by; undefined while nothing may be written by it. */
export function generationOf({ sets, rules }: SetsDeps): Generation | undefined {
  const { hash: setHash } = rules.current.policies.set;
  return sets.generation === undefined ? undefined : { number: sets.generation, setHash };
}

/** Learns whether another daemon of the group has loaded another set since; logged once each time that this changes. */
export async function compareGenerations(deps: CompareGenerationsDeps): Promise<void> {
  const { sets, store, rules, storeWatch } = deps;
  if (sets.generation === undefined) return;
  let latest = await store.generation();
  if (latest === undefined) {
    await storeWatch.check();
    latest = await store.generation();
  }
  if (latest === undefined) return;
  if (latest.setHash === rules.current.policies.set.hash) sets.generation = latest.number;
  noteNewer(deps, latest.number > sets.generation ? latest : undefined);
}

function noteNewer({ sets, telemetry: { log } }: CompareGenerationsDeps, newer: Generation | undefined): void {
  const before = sets.newer;
  sets.newer = newer;
  if (newer && newer.number !== before?.number) {
    log.warn({ event: 'ebb.superseded', hash: newer.setHash, generation: newer.number }, describeNewer(newer));
  }
  if (!newer && before)
    log.info({ event: 'ebb.policies_current' }, 'the policy set of this daemon is the newest again');
}

function describeNewer({ setHash }: Generation): string {
  return `another daemon has loaded policy set ${short(setHash)}: this one writes nothing until it has loaded it too`;
}

const NOT_MEASURED = 'it is being counted how many computes the policy set would disconnect at once';

/** The set that waits for `ebb approve`, if one does. */
export function stagedSet({
  sets,
  rules,
}: SetsDeps): { hash: string; message: string; impact: DisruptionImpact } | undefined {
  const { candidate } = sets;
  if (!candidate?.impact) return undefined;
  const { hash } = candidate.rules.policies;
  const { disconnected, computes } = candidate.impact;
  const current = short(rules.current.policies.set.hash);
  const meanwhile = sets.generation === undefined ? 'nothing is written' : `${current} stays current`;
  const message = `policy set ${short(hash)} would disconnect ${disconnected} of ${computes} computes at once: it is staged, and ${meanwhile}; to make it current: ebb approve ${hash}`;
  return { hash, message, impact: candidate.impact };
}

/** What the check of the policies says: what is current, and what stands in the way of more. */
export function describeSets({ sets, rules, mode }: SetsDeps & { mode: Mode }): string {
  const { policies } = rules.current;
  const notes = [`${policies.set.policies.length} current, set ${short(policies.set.hash)}`];
  const staged = stagedSet({ sets, rules });
  if (staged) notes.push(staged.message);
  else if (mode === 'enforce' && sets.generation === undefined) notes.push(NOT_MEASURED);
  const [newer, broken] = [describedNewer(sets), sets.problems[0]];
  if (newer !== undefined) notes.push(newer);
  if (broken !== undefined) notes.push(describeBroken(broken));
  return notes.join('; ');
}

/** What keeps the newest policies from counting, besides that they are staged: one line each. */
export function policyProblems({ sets }: Pick<SetsDeps, 'sets'>): string[] {
  const newer = describedNewer(sets);
  const { delay } = sets.candidate ?? {};
  return [
    ...(newer === undefined ? [] : [newer]),
    ...(delay ? [describeDelay(delay.vanished)] : []),
    ...sets.problems.map(describeBroken),
  ];
}

/** In one line: what vanished, and when the set counts. */
export function describeDelay([first = '', ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return `${first}${more}: the new policies count once their files have not changed for ${DELAY_MS / 1000} s, or at once on SIGHUP`;
}

function describedNewer({ newer }: PolicySets): string | undefined {
  return newer && describeNewer(newer);
}

function describeBroken(problem: string): string {
  return `what was read last is broken: ${problem}`;
}

const BLOCKS: readonly WriteBlock[] = ['clock_off', 'staged', 'superseded'];

/** What was last known to keep an enforcing daemon from writing anything. */
export function cannotWrite({ sets, storeClock }: WriteBlockDeps): WriteBlock | undefined {
  if (storeClock.wasTooFarOff() !== undefined) return 'clock_off';
  if (sets.generation === undefined) return 'staged';
  return sets.newer ? 'superseded' : undefined;
}

/** Sets the gauges of what waits, and of what keeps this daemon from writing. */
export function showSets(deps: ShowSetsDeps): void {
  const { mode, telemetry } = deps;
  const { metrics } = telemetry;
  const blocked = mode === 'enforce' ? cannotWrite(deps) : undefined;
  for (const reason of BLOCKS) metrics.set('ebb_write_blocked', { reason }, reason === blocked ? 1 : 0);
  metrics.set('ebb_staged_changes', {}, stagedSet(deps)?.impact.disconnected ?? 0);
  metrics.set('ebb_policy_load_success', {}, deps.sets.problems.length === 0 ? 1 : 0);
}

/** Enough of a hash to tell sets apart in a sentence. */
export function short(hash: string): string {
  return hash.slice(0, 12);
}

function refuse(code: ReasonCode, message: string): WritePermission {
  return { ok: false, reason: { code, message } };
}
