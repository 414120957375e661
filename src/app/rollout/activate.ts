import type { Policy } from '../../domain/policy/policy.ts';
import { vanishedBetween } from '../../domain/policy/vanished.ts';
import type { Rules, RulesReading } from '../../ports/rules.ts';
import type { Metrics } from '../../ports/telemetry.ts';
import type { DaemonContext } from '../context.ts';
import { compileRules } from '../rules.ts';
import { isTooMuch, measureImpact } from './disruption-impact.ts';
import { reevaluateFleet } from './reevaluate.ts';
import { type Candidate, describeResting, REST_MS, short, stagedSet } from './write-permission.ts';

/** The least of a hash that may stand for it. */
const SHORTEST_HASH = 12;

/** Problems that go into one line of the log; `ebb validate` shows all. */
const MOST_PROBLEMS_LOGGED = 20;

/** Starts with the rules that the context has: in force at once, unless they must be weighed first. */
export async function beginWithRules(context: DaemonContext): Promise<void> {
  if (context.mode === 'observe') return;
  const rules = rulesInForce(context);
  const { hash } = rules.policies;
  if (await isAllowed(context, hash)) context.sets.generation = await context.store.raiseGeneration(hash);
  else context.sets.candidate = { rules };
}

export interface ReadingOptions {
  /** A person has asked for it: then nothing is waited for. */
  isAsked: boolean;
  signal: AbortSignal;
}

/** Takes what was read: rules that are right come into force as far as they may, broken ones leave everything as it is. */
export async function takeReading(
  context: DaemonContext,
  reading: RulesReading,
  { isAsked, signal }: ReadingOptions,
): Promise<void> {
  noteProblems(context, reading.ok ? [] : reading.problems);
  // What rested has not rested any more.
  if (!reading.ok && context.sets.candidate?.resting) context.sets.candidate = undefined;
  if (reading.ok) await offerRules(context, reading, { mayCountAtOnce: isAsked || reading.replaced, signal });
}

async function offerRules(
  context: DaemonContext,
  { rules, warnings }: Extract<RulesReading, { ok: true }>,
  { mayCountAtOnce, signal }: { mayCountAtOnce: boolean; signal: AbortSignal },
): Promise<void> {
  const { sets, telemetry } = context;
  const { hash } = rules.policies;
  const isKnown = sets.candidate?.rules.policies.hash === hash;
  const isInForce = hash === context.policies.set.hash;
  if (warnings.length > 0 && !isInForce && !isKnown) {
    telemetry.log.warn({ event: 'ebb.policy_warnings', hash, warnings }, warnings.join('; '));
  }
  if (isKnown && sets.candidate) sets.candidate.rules = rules;
  else sets.candidate = isInForce ? undefined : { rules };
  if (sets.candidate && mayCountAtOnce) delete sets.candidate.resting;
  else if (sets.candidate && !isKnown) letRest(context, sets.candidate);
  if (isInForce && fingerprint(rules) !== fingerprint(rulesInForce(context))) exchange(context, rules);
  await advanceRules(context, signal);
}

/** Where something vanished, somebody may be in the middle of writing a file. */
function letRest({ policies, clock, telemetry }: DaemonContext, candidate: Candidate): void {
  const { policies: after, hash } = candidate.rules.policies;
  const vanished = vanishedBetween(policies.set.policies, after);
  if (vanished.length === 0) return;
  candidate.resting = { vanished, sinceMonotonicMs: clock.monotonicMs() };
  telemetry.log.info({ event: 'ebb.policies_resting', hash, vanished }, describeResting(vanished));
}

function hasRested({ clock }: DaemonContext, { resting }: Candidate): boolean {
  return resting === undefined || clock.monotonicMs() - resting.sinceMonotonicMs >= REST_MS;
}

/** Does what is left to do: brings into force what has become allowed, and settles what follows. Called again and again. */
export async function advanceRules(context: DaemonContext, signal: AbortSignal): Promise<void> {
  const { sets } = context;
  const { candidate } = sets;
  if (candidate && hasRested(context, candidate) && (await mayComeIntoForce(context, candidate, signal)))
    await bringIntoForce(context, candidate.rules);
  if (!sets.unsettled) return;
  await reevaluateFleet(context);
  sets.unsettled = false;
}

async function mayComeIntoForce(context: DaemonContext, candidate: Candidate, signal: AbortSignal): Promise<boolean> {
  if (await isAllowed(context, candidate.rules.policies.hash)) return true;
  const impact = candidate.impact ?? (await measureImpact(context, candidate.rules, signal));
  if (!impact) return false;
  if (!isTooMuch(impact)) return true;
  candidate.impact = impact;
  tellStaged(context, candidate);
  return false;
}

/** Without weighing: nothing is staged here, a person has said yes, or a daemon of the group has it in force. */
async function isAllowed({ mode, sets, store }: DaemonContext, hash: string): Promise<boolean> {
  if (mode === 'observe' || !sets.stages) return true;
  if (sets.accepted !== undefined && names(sets.accepted, hash)) return true;
  if ((await store.generation())?.setHash === hash) return true;
  return (await store.approvals()).some((approval) => names(approval.hash, hash));
}

function names(given: string, hash: string): boolean {
  return given.length >= SHORTEST_HASH && hash.startsWith(given);
}

/** The generation first: from then on the daemons with the older set write nothing. An observing one is not in their way. */
async function bringIntoForce(context: DaemonContext, rules: Rules): Promise<void> {
  const { sets, store, mode } = context;
  const generation = mode === 'enforce' ? await store.raiseGeneration(rules.policies.hash) : undefined;
  sets.generation = generation;
  sets.newer = undefined;
  sets.candidate = undefined;
  exchange(context, rules);
}

/** One assignment: whoever decides, decides wholly by the old rules or wholly by the new ones. */
function exchange(context: DaemonContext, rules: Rules): void {
  const { log, metrics } = context.telemetry;
  context.rules.current = compileRules(rules);
  context.sets.unsettled = true;
  showPolicies(metrics, rules.policies.policies);
  const { policies, hash } = rules.policies;
  const { generation } = context.sets;
  log.info(
    {
      event: 'ebb.policies_loaded',
      hash,
      generation,
      revision: rules.revision,
      policies: policies.map(({ name }) => name),
    },
    `policy set ${short(hash)} is in force: ${policies.length} policies`,
  );
}

function rulesInForce({ policies, disruption, manualChanges, profiles, revision }: DaemonContext): Rules {
  return { policies: policies.set, disruption, manualChanges, profiles, revision };
}

/** Equal for rules between which nothing need be exchanged. */
function fingerprint({ policies, disruption, manualChanges, profiles, revision }: Rules): string {
  const files = policies.policies.map(({ file }) => file);
  return JSON.stringify([policies.hash, files, disruption, manualChanges, [...profiles], revision]);
}

function tellStaged(context: DaemonContext, candidate: Candidate): void {
  const staged = stagedSet(context);
  if (candidate.told || !staged) return;
  candidate.told = true;
  const { hash, message, impact } = staged;
  context.telemetry.log.warn({ event: 'ebb.policies_staged', hash, ...impact }, message);
}

/** Said when it becomes so, and when something else is wrong: not each time that it still is. */
function noteProblems({ sets, policies, telemetry }: DaemonContext, problems: readonly string[]): void {
  const before = sets.problems;
  sets.problems = problems;
  if (problems.join('\n') === before.join('\n')) return;
  const [first = '', ...others] = problems;
  const fields = { hash: policies.set.hash, problems: problems.slice(0, MOST_PROBLEMS_LOGGED) };
  if (problems.length === 0) {
    telemetry.log.info({ event: 'ebb.policies_mended' }, 'policies and settings can be read again');
    return;
  }
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const message = `${first}${more}; policy set ${short(policies.set.hash)} stays in force`;
  telemetry.log.error({ event: 'ebb.policies_refused', ...fields }, message);
}

/** One series for each policy in force; those of policies that are gone vanish. */
export function showPolicies(metrics: Metrics, policies: readonly Policy[]): void {
  metrics.clear('ebb_policy_info');
  for (const { name, kind, mode, owner = '', file } of policies) {
    metrics.set('ebb_policy_info', { policy: name, kind, mode, owner, file }, 1);
  }
}
