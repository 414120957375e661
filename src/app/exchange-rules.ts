import type { Policy } from '../domain/policy.ts';
import type { Rules, RulesReading } from '../ports/rules.ts';
import type { Metrics } from '../ports/telemetry.ts';
import type { DaemonContext } from './context.ts';
import { type Candidate, short, stagedSet } from './policy-sets.ts';
import { settleRules } from './settle-rules.ts';
import { decidingBy, isTooMuch, weighRules } from './weigh-rules.ts';

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

/** Takes what was read: rules that are right come into force as far as they may, broken ones leave everything as it is. */
export async function takeReading(context: DaemonContext, reading: RulesReading, signal: AbortSignal): Promise<void> {
  noteProblems(context, reading.ok ? [] : reading.problems);
  if (reading.ok) await offerRules(context, reading.rules, reading.warnings, signal);
}

async function offerRules(
  context: DaemonContext,
  rules: Rules,
  warnings: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { sets, telemetry } = context;
  const { hash } = rules.policies;
  if (warnings.length > 0 && hash !== context.policies.set.hash) {
    telemetry.log.warn({ event: 'ebb.policy_warnings', hash, warnings }, warnings.join('; '));
  }
  const before = sets.candidate?.rules.policies.hash;
  const isInForce = hash === context.policies.set.hash;
  if (before === hash && sets.candidate) sets.candidate.rules = rules;
  else sets.candidate = isInForce ? undefined : { rules };
  if (isInForce && fingerprint(rules) !== fingerprint(rulesInForce(context))) exchange(context, rules);
  await advanceRules(context, signal);
}

/** Does what is left to do: brings into force what has become allowed, and settles what follows. Called again and again. */
export async function advanceRules(context: DaemonContext, signal: AbortSignal): Promise<void> {
  const { sets } = context;
  const { candidate } = sets;
  if (candidate && (await mayComeIntoForce(context, candidate, signal))) await bringIntoForce(context, candidate.rules);
  if (!sets.unsettled) return;
  await settleRules(context);
  sets.unsettled = false;
}

async function mayComeIntoForce(context: DaemonContext, candidate: Candidate, signal: AbortSignal): Promise<boolean> {
  if (await isAllowed(context, candidate.rules.policies.hash)) return true;
  const weight = candidate.weight ?? (await weighRules(context, candidate.rules, signal));
  if (!weight) return false;
  if (!isTooMuch(weight)) return true;
  candidate.weight = weight;
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
  Object.assign(context, decidingBy(rules));
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
  const { hash, message, weight } = staged;
  context.telemetry.log.warn({ event: 'ebb.policies_staged', hash, ...weight }, message);
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
