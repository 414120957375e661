import type { Policy } from '../../domain/policy/policy.ts';
import { changedTrials, vanishedBetween } from '../../domain/policy/set-changes.ts';
import type { Rules, RulesReading } from '../../ports/rules.ts';
import type { Metrics } from '../../ports/telemetry.ts';
import { compileRules } from '../rules.ts';
import { isTooMuch, type MeasureImpactDeps, measureImpact } from './disruption-impact.ts';
import { type ReevaluateDeps, reevaluateFleet } from './reevaluate.ts';
import { type Candidate, DELAY_MS, describeDelay, type SetsDeps, short, stagedSet } from './write-permission.ts';

/** The least of a hash that may stand for it. */
const SHORTEST_HASH = 12;

/** Problems that go into one line of the log; `ebb validate` shows all. */
const MOST_PROBLEMS_LOGGED = 20;

export interface ActivateDeps extends SetsDeps, MeasureImpactDeps, ReevaluateDeps {
  clock: MeasureImpactDeps['clock'];
}

/** Starts with the rules that are given: current at once, unless they must have their impact counted first. */
export async function beginWithRules(deps: ActivateDeps): Promise<void> {
  if (deps.mode === 'observe') return;
  const rules = currentRules(deps);
  const { hash } = rules.policies;
  if (await isAllowed(deps, hash)) deps.sets.generation = await deps.store.raiseGeneration(hash);
  else deps.sets.candidate = { rules };
}

export interface ReadingOptions {
  /** A person has asked for it: then nothing is waited for. */
  isAsked: boolean;
  signal: AbortSignal;
}

/** Takes what was read: rules that are right become current as far as they may, broken ones leave everything as it is. */
export async function takeReading(
  deps: ActivateDeps,
  read: RulesReading,
  { isAsked, signal }: ReadingOptions,
): Promise<void> {
  const reading = withoutChangedTrials(deps, read);
  noteProblems(deps, reading.ok ? [] : reading.problems);
  // The files have changed again, so the delay begins again.
  if (!reading.ok && deps.sets.candidate?.delay) deps.sets.candidate = undefined;
  if (reading.ok) await offerRules(deps, reading, { mayCountAtOnce: isAsked || reading.replaced, signal });
}

function withoutChangedTrials({ rules, clock }: ActivateDeps, reading: RulesReading): RulesReading {
  if (!reading.ok) return reading;
  const { policies } = rules.current;
  const problems = changedTrials(policies.set.policies, reading.rules.policies.policies, clock.now());
  return problems.length > 0 ? { ok: false, problems } : reading;
}

async function offerRules(
  deps: ActivateDeps,
  { rules, warnings }: Extract<RulesReading, { ok: true }>,
  { mayCountAtOnce, signal }: { mayCountAtOnce: boolean; signal: AbortSignal },
): Promise<void> {
  const { sets, telemetry } = deps;
  const { hash } = rules.policies;
  const isKnown = sets.candidate?.rules.policies.hash === hash;
  const isCurrent = hash === deps.rules.current.policies.set.hash;
  if (warnings.length > 0 && !isCurrent && !isKnown) {
    telemetry.log.warn({ event: 'ebb.policy_warnings', hash, warnings }, warnings.join('; '));
  }
  if (isKnown && sets.candidate) sets.candidate.rules = rules;
  else sets.candidate = isCurrent ? undefined : { rules };
  if (sets.candidate && mayCountAtOnce) delete sets.candidate.delay;
  else if (sets.candidate && !isKnown) delayCandidate(deps, sets.candidate);
  if (isCurrent && fingerprint(rules) !== fingerprint(currentRules(deps))) swapRules(deps, rules);
  await advanceRules(deps, signal);
}

/** Where something vanished, somebody may be in the middle of writing a file. */
function delayCandidate({ rules, clock, telemetry }: ActivateDeps, candidate: Candidate): void {
  const { policies: after, hash } = candidate.rules.policies;
  const vanished = vanishedBetween(rules.current.policies.set.policies, after);
  if (vanished.length === 0) return;
  candidate.delay = { vanished, sinceMonotonicMs: clock.monotonicMs() };
  telemetry.log.info({ event: 'ebb.policies_delayed', hash, vanished }, describeDelay(vanished));
}

function isDelayOver({ clock }: ActivateDeps, { delay }: Candidate): boolean {
  return delay === undefined || clock.monotonicMs() - delay.sinceMonotonicMs >= DELAY_MS;
}

/** Does what is left to do: activates what has become allowed, and does what follows. Called again and again. */
export async function advanceRules(deps: ActivateDeps, signal: AbortSignal): Promise<void> {
  const { sets } = deps;
  const { candidate } = sets;
  if (candidate && isDelayOver(deps, candidate) && (await mayBecomeCurrent(deps, candidate, signal)))
    await makeCurrent(deps, candidate.rules);
  if (!sets.needsReevaluation) return;
  await reevaluateFleet(deps);
  sets.needsReevaluation = false;
}

async function mayBecomeCurrent(deps: ActivateDeps, candidate: Candidate, signal: AbortSignal): Promise<boolean> {
  if (await isAllowed(deps, candidate.rules.policies.hash)) return true;
  const impact = candidate.impact ?? (await measureImpact(deps, candidate.rules, signal));
  if (!impact) return false;
  if (!isTooMuch(impact)) return true;
  candidate.impact = impact;
  reportStaged(deps, candidate);
  return false;
}

/** Without counting the impact: nothing is staged here, a person has said yes, or a daemon of the group has it as its current set. */
async function isAllowed({ mode, sets, store }: ActivateDeps, hash: string): Promise<boolean> {
  if (mode === 'observe' || !sets.stages) return true;
  if (sets.accepted !== undefined && names(sets.accepted, hash)) return true;
  if ((await store.generation())?.setHash === hash) return true;
  return (await store.approvals()).some((approval) => names(approval.hash, hash));
}

function names(given: string, hash: string): boolean {
  return given.length >= SHORTEST_HASH && hash.startsWith(given);
}

/** The generation first: from then on the daemons with the older set write nothing. An observing one is not in their way. */
async function makeCurrent(deps: ActivateDeps, rules: Rules): Promise<void> {
  const { sets, store, mode } = deps;
  const generation = mode === 'enforce' ? await store.raiseGeneration(rules.policies.hash) : undefined;
  sets.generation = generation;
  sets.newer = undefined;
  sets.candidate = undefined;
  swapRules(deps, rules);
}

/** One assignment: each decision uses the old rules throughout, or the new ones. */
function swapRules(deps: ActivateDeps, rules: Rules): void {
  const { log, metrics } = deps.telemetry;
  deps.rules.current = compileRules(rules);
  deps.sets.needsReevaluation = true;
  showPolicies(metrics, rules.policies.policies);
  const { policies, hash } = rules.policies;
  const { generation } = deps.sets;
  log.info(
    {
      event: 'ebb.policies_loaded',
      hash,
      generation,
      revision: rules.revision,
      policies: policies.map(({ name }) => name),
    },
    `policy set ${short(hash)} is current: ${policies.length} policies`,
  );
}

function currentRules({ rules }: ActivateDeps): Rules {
  const { policies, ...others } = rules.current;
  return { policies: policies.set, ...others };
}

/** Equal for rules between which nothing need be exchanged. */
function fingerprint({ policies, disruption, manualChanges, profiles, revision }: Rules): string {
  const files = policies.policies.map(({ file }) => file);
  return JSON.stringify([policies.hash, files, disruption, manualChanges, [...profiles], revision]);
}

function reportStaged(deps: ActivateDeps, candidate: Candidate): void {
  const staged = stagedSet(deps);
  if (candidate.isReported || !staged) return;
  candidate.isReported = true;
  const { hash, message, impact } = staged;
  deps.telemetry.log.warn({ event: 'ebb.policies_staged', hash, ...impact }, message);
}

/** Said when it becomes so, and when something else is wrong: not each time that it still is. */
function noteProblems({ sets, rules, telemetry }: ActivateDeps, problems: readonly string[]): void {
  const { hash } = rules.current.policies.set;
  const before = sets.problems;
  sets.problems = problems;
  if (problems.join('\n') === before.join('\n')) return;
  const [first = '', ...others] = problems;
  const fields = { hash, problems: problems.slice(0, MOST_PROBLEMS_LOGGED) };
  if (problems.length === 0) {
    telemetry.log.info({ event: 'ebb.policies_recovered' }, 'policies and settings can be read again');
    return;
  }
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const message = `${first}${more}; policy set ${short(hash)} stays current`;
  telemetry.log.error({ event: 'ebb.policies_refused', ...fields }, message);
}

/** One series for each current policy; those of policies that are gone vanish. */
export function showPolicies(metrics: Metrics, policies: readonly Policy[]): void {
  metrics.clear('ebb_policy_info');
  for (const { name, kind, mode, owner = '', file } of policies) {
    metrics.set('ebb_policy_info', { policy: name, kind, mode, owner, file }, 1);
  }
}
