import { decisionHash } from '../../domain/evaluate/decision-version.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { changedTrials, vanishedBetween } from '../../domain/policy/set-changes.ts';
import { isFrozen, NO_TEAM, partOf, withScopes } from '../../domain/policy/team-parts.ts';
import type { Rules, RulesReading } from '../../ports/rules.ts';
import { type ActivateDeps, advanceRules, currentRules, swapRules, withRulesOf } from './activate.ts';
import { identityOf, registerGeneration } from './generations.ts';
import { type Candidate, describeDelay, ownerOf, short, stateOf } from './write-permission.ts';

/** Problems that go into one line of the log; `ebb validate` shows all. */
const MOST_PROBLEMS_LOGGED = 20;

export interface ReadingOptions {
  /** A person has asked for it: then nothing is waited for. */
  isAsked: boolean;
  signal: AbortSignal;
}

/**
 * Takes what was read: rules that are right become current as far as they may, broken ones leave everything as it is. Each part of
 * the set by itself: what is wrong with the files of one team, or waits there, is no matter of the others.
 */
export async function takeReading(
  deps: ActivateDeps,
  reading: RulesReading,
  { isAsked, signal }: ReadingOptions,
): Promise<void> {
  const { sets, clock, telemetry } = deps;
  if (!reading.ok) {
    refusePart(deps, NO_TEAM, reading.problems);
    return;
  }
  const { rules, warnings, broken } = reading;
  await rescope(deps, rules.teams);
  const before = deps.rules.current.policies.set;
  const teams = new Set([...rules.teams.map(({ name }) => name), ...before.policies.flatMap(({ team }) => team ?? [])]);
  const parts = [NO_TEAM, ...teams].map((team) => [team, partOf(rules.policies, team)] as const);
  const isNews = ([team, { hash }]: (typeof parts)[number]) =>
    hash !== partOf(before, team).hash && hash !== stateOf(sets, team).candidate?.rules.policies.hash;
  if (warnings.length > 0 && parts.some(isNews)) {
    telemetry.log.warn({ event: 'ebb.policy_warnings', hash: rules.policies.hash, warnings }, warnings.join('; '));
  }
  for (const [team, part] of parts) {
    const ofTrials = changedTrials(partOf(before, team).policies, part.policies, clock.now());
    const problems = broken?.get(team) ?? ofTrials;
    if (problems.length > 0) refusePart(deps, team, problems);
    else offerPart(deps, team, { ...rules, policies: part }, isAsked || reading.replaced);
  }
  for (const team of sets.teams.keys()) if (!teams.has(team)) sets.teams.delete(team);
  await advanceRules(deps, signal);
}

/**
 * Another scope counts at once, also for policies of which only an older version is good. What waits under an older scope waits no more:
 * an approval must not make it current beyond the new one.
 */
async function rescope(deps: ActivateDeps, teams: Rules['teams']): Promise<void> {
  const { sets, rules } = deps;
  const scopeOf = (of: Rules['teams'], team: string) => JSON.stringify(of.find(({ name }) => name === team));
  for (const [team, state] of sets.teams) {
    if (state.candidate && scopeOf(state.candidate.rules.teams, team) !== scopeOf(teams, team))
      state.candidate = undefined;
  }
  const { set } = rules.current.policies;
  const policies = withScopes(set, teams);
  if (policies === set) return;
  const scoped = { ...currentRules(deps), policies };
  // Only over this daemon's own generation: what another one has registered meanwhile may have newer policies too.
  if (sets.generation !== undefined) await registerGeneration(deps, identityOf(sets, scoped), sets.generation);
  swapRules(deps, scoped);
}

function refusePart(deps: ActivateDeps, team: string, problems: readonly string[]): void {
  const state = stateOf(deps.sets, team);
  noteProblems(deps, team, problems);
  // The files have changed again, so the delay begins again.
  if (state.candidate?.delay) state.candidate = undefined;
}

function offerPart(deps: ActivateDeps, team: string, rules: Rules, mayCountAtOnce: boolean): void {
  const state = stateOf(deps.sets, team);
  noteProblems(deps, team, []);
  const before = partOf(deps.rules.current.policies.set, team);
  const { hash } = rules.policies;
  // Settings come with the part of no team.
  const decidesAlike = (one: Rules) => team !== NO_TEAM || settingsHash(deps, one) === settingsHash(deps, rules);
  const isKnown = state.candidate?.rules.policies.hash === hash && decidesAlike(state.candidate.rules);
  const isCurrent = hash === before.hash && decidesAlike(currentRules(deps));
  // What a daemon starts with is decided by, and not yet enforced: restored, it waits as it did.
  const isUnapproved = team === NO_TEAM && deps.mode === 'enforce' && deps.sets.generation === undefined;
  if (isKnown && state.candidate) state.candidate.rules = rules;
  else state.candidate = isCurrent && !isUnapproved ? undefined : { rules };
  if (state.candidate && mayCountAtOnce) delete state.candidate.delay;
  else if (state.candidate && !isKnown && !isFrozen(before)) delayCandidate(deps, before, state.candidate);
  const swapped = withRulesOf(deps, new Map([[team, rules]]));
  if (isCurrent && fingerprint(swapped) !== fingerprint(currentRules(deps))) swapRules(deps, swapped);
}

/** Where something vanished, somebody may be in the middle of writing a file. */
function delayCandidate({ clock, telemetry }: ActivateDeps, before: PolicySet, candidate: Candidate): void {
  const { policies: after, hash } = candidate.rules.policies;
  const vanished = vanishedBetween(before.policies, after);
  if (vanished.length === 0) return;
  candidate.delay = { vanished, sinceMonotonicMs: clock.monotonicMs() };
  telemetry.log.info({ event: 'ebb.policies_delayed', hash, vanished }, describeDelay(vanished));
}

/** Equal for settings by which the same policies decide alike. */
function settingsHash({ sets }: ActivateDeps, rules: Rules): string {
  return decisionHash('', rules, sets.decisionVersion);
}

/** Equal for rules between which nothing need be exchanged. */
function fingerprint({ policies, disruption, manualChanges, profiles, revision, teams, costs }: Rules): string {
  const files = policies.policies.map(({ file }) => file);
  const ofCosts = [costs.owners, costs.prices, [...costs.plans]];
  return JSON.stringify([policies.hash, files, disruption, manualChanges, [...profiles], revision, teams, ofCosts]);
}

/** Said when it becomes so, and when something else is wrong: not each time that it still is. */
function noteProblems({ sets, rules, telemetry }: ActivateDeps, team: string, problems: readonly string[]): void {
  const { hash } = rules.current.policies.set;
  const state = stateOf(sets, team);
  const before = state.problems;
  state.problems = problems;
  if (problems.join('\n') === before.join('\n')) return;
  const [first = '', ...others] = problems;
  if (problems.length === 0) {
    const what = team === NO_TEAM ? 'policies and settings' : `policies of ${team}`;
    telemetry.log.info({ event: 'ebb.policies_recovered', ...ownerOf(team) }, `${what} can be read again`);
    return;
  }
  const fields = { ...ownerOf(team), hash, problems: problems.slice(0, MOST_PROBLEMS_LOGGED) };
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const kept = team === NO_TEAM ? `policy set ${short(hash)}` : `what is current of ${team}`;
  telemetry.log.error({ event: 'ebb.policies_refused', ...fields }, `${first}${more}; ${kept} stays current`);
}
