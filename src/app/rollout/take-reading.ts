import { decisionHash } from '../../domain/evaluate/decision-version.ts';
import { changedTrials, vanishedBetween } from '../../domain/policy/set-changes.ts';
import { isFrozen, NO_TEAM, partOf, withScopes } from '../../domain/policy/team-parts.ts';
import type { Rules, RulesReading } from '../../ports/rules.ts';
import { type ActivateDeps, advanceRules, currentRules, swapRules, withRulesOf } from './activate.ts';
import { type DelayedReading, describeDelay, isBeingWritten, noteChanges } from './delayed-reading.ts';
import { identityOf, registerGeneration } from './generations.ts';
import { ownerOf, short, stateOf } from './write-permission.ts';

/** Problems that go into one line of the log; `ebb validate` shows all. */
const MOST_PROBLEMS_LOGGED = 20;

export interface ReadingOptions {
  /** A person has asked for it: then nothing is waited for. */
  isAsked: boolean;
  signal: AbortSignal;
}

type GoodReading = RulesReading & { ok: true };

/**
 * Takes what was read: rules that are right become current as far as they may, broken ones leave everything as it is. Rules of files that
 * somebody may still be writing wait.
 */
export async function takeReading(
  deps: ActivateDeps,
  reading: RulesReading,
  { isAsked, signal }: ReadingOptions,
): Promise<void> {
  const { sets, clock } = deps;
  if (isAsked) sets.changedAt.clear();
  else if (reading.changes) noteChanges(sets.changedAt, reading.changes, clock.monotonicMs());
  const wasDelayed = sets.delayed;
  sets.delayed = undefined;
  if (!reading.ok) {
    noteProblems(deps, NO_TEAM, reading.problems);
    return;
  }
  const isNews = fingerprint(reading.rules) !== fingerprint(currentRules(deps));
  if (isNews && isBeingWritten(sets.changedAt, clock.monotonicMs())) delayReading(deps, reading, wasDelayed);
  else await takeRules(deps, reading, signal);
}

/** Takes what was delayed once its files have not changed for a while. Called again and again. */
export async function takeDelayed(deps: ActivateDeps, signal: AbortSignal): Promise<void> {
  const { sets, clock } = deps;
  const { delayed } = sets;
  if (!delayed || isBeingWritten(sets.changedAt, clock.monotonicMs())) return;
  sets.delayed = undefined;
  await takeRules(deps, delayed.reading, signal);
}

/** What is wrong is said at once. What is right waits, with the scopes of teams and the settings. */
function delayReading(deps: ActivateDeps, reading: GoodReading, before: DelayedReading | undefined): void {
  const vanished: string[] = [];
  for (const { team, old, part, problems } of partsOf(deps, reading)) {
    noteProblems(deps, team, problems);
    if (problems.length === 0 && !isFrozen(old)) vanished.push(...vanishedBetween(old.policies, part.policies));
  }
  deps.sets.delayed = { reading, vanished };
  const { hash } = reading.rules.policies;
  if (before?.reading.rules.policies.hash === hash) return;
  deps.telemetry.log.info({ event: 'ebb.policies_delayed', hash, vanished }, describeDelay(vanished));
}

/** The parts of what was read, by team, that of no team first: what is wrong with one, or waits there, is no matter of the others. */
function partsOf({ rules: { current }, clock }: ActivateDeps, { rules, broken }: GoodReading) {
  const before = current.policies.set;
  const teams = new Set([...rules.teams.map(({ name }) => name), ...before.policies.flatMap(({ team }) => team ?? [])]);
  return [NO_TEAM, ...teams].map((team) => {
    const [old, part] = [partOf(before, team), partOf(rules.policies, team)];
    const problems = broken?.get(team) ?? changedTrials(old.policies, part.policies, clock.now());
    return { team, old, part, problems };
  });
}

async function takeRules(deps: ActivateDeps, reading: GoodReading, signal: AbortSignal): Promise<void> {
  const { sets, telemetry } = deps;
  const { rules, warnings } = reading;
  await rescope(deps, rules.teams);
  const parts = partsOf(deps, reading);
  const isNews = ({ team, old, part: { hash } }: (typeof parts)[number]) =>
    hash !== old.hash && hash !== stateOf(sets, team).candidate?.rules.policies.hash;
  if (warnings.length > 0 && parts.some(isNews)) {
    telemetry.log.warn({ event: 'ebb.policy_warnings', hash: rules.policies.hash, warnings }, warnings.join('; '));
  }
  for (const { team, part, problems } of parts) {
    noteProblems(deps, team, problems);
    if (problems.length === 0) offerPart(deps, team, { ...rules, policies: part });
  }
  const teams = new Set(parts.map(({ team }) => team));
  for (const team of sets.teams.keys()) if (!teams.has(team)) sets.teams.delete(team);
  await advanceRules(deps, signal);
}

/**
 * Another scope counts without approval, also for policies of which only an older version is good. What waits under an older scope waits no more:
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

function offerPart(deps: ActivateDeps, team: string, rules: Rules): void {
  const state = stateOf(deps.sets, team);
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
  const swapped = withRulesOf(deps, new Map([[team, rules]]));
  if (isCurrent && fingerprint(swapped) !== fingerprint(currentRules(deps))) swapRules(deps, swapped);
}

/** Equal for settings by which the same policies decide alike. */
function settingsHash({ sets }: ActivateDeps, rules: Rules): string {
  return decisionHash('', rules, sets.decisionVersion);
}

/** Equal for rules between which nothing need be exchanged. */
function fingerprint({ policies, profiles, costs, ...settings }: Rules): string {
  const files = policies.policies.map(({ file }) => file);
  const ofCosts = [costs.owners, costs.prices, [...costs.plans]];
  return JSON.stringify([policies.hash, files, [...profiles], ofCosts, Object.entries(settings).sort()]);
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
