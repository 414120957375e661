import type { Compute } from '../../domain/compute/compute.ts';
import { isRestoreUpToDate } from '../../domain/overrides/restore.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import { NO_TEAM, teamPart, unloadedPart, withParts } from '../../domain/policy/team-parts.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Store } from '../../ports/store.ts';
import type { Metrics } from '../../ports/telemetry.ts';
import { type EvaluateProjectDeps, evaluateProject } from '../evaluate-project/evaluate.ts';
import { type CachedProject, FRESH_MS } from '../fleet/fleet.ts';
import type { Overrides } from '../overrides.ts';
import { compileRules } from '../rules.ts';
import { requestReconcile, type ScheduleDeps, scheduleBoundaries } from '../triggers.ts';
import { isTooMuch, lacksBranches, type MeasureImpactDeps, measureImpact } from './disruption-impact.ts';
import { identityOf, registerGeneration, short } from './generations.ts';
import { type Candidate, ownerOf, partStates, type SetsDeps, stagedSets, stateOf } from './write-permission.ts';

/** The shortest accepted prefix of a hash. */
const SHORTEST_HASH = 12;

export interface ActivateDeps extends SetsDeps, MeasureImpactDeps, ReevaluateDeps {
  clock: MeasureImpactDeps['clock'];
}

/**
 * Starts with the rules that are given: current at once, unless they must have their impact counted first. Until that is done nothing
 * is written to the computes of teams, whose parts are counted one by one.
 */
export async function beginWithRules(deps: ActivateDeps): Promise<void> {
  const { sets, mode } = deps;
  if (mode === 'observe') return;
  const rules = currentRules(deps);
  const { policies, teams } = rules;
  for (const { name } of teams) stateOf(sets, name);
  if (await isAllowed(deps, [rules])) {
    await registerGeneration(deps, identityOf(sets, rules));
    return;
  }
  sets.candidate = { rules: { ...rules, policies: teamPart(policies, NO_TEAM) } };
  const frozen = new Map(teams.map((team) => [team.name, unloadedPart(team)]));
  for (const [name, { hash }] of frozen) {
    const part = teamPart(policies, name);
    if (part.hash !== hash) stateOf(sets, name).candidate = { rules: { ...rules, policies: part } };
  }
  if (teams.length > 0)
    deps.rules.current = compileRules({ ...rules, policies: withParts(policies, frozen) }, deps.rules.current);
}

/** The current rules with other parts; the settings come with the part of no team. */
export function withRulesOf(deps: ActivateDeps, parts: ReadonlyMap<string, Rules>): Rules {
  const current = currentRules(deps);
  const policies = new Map([...parts].map(([team, rules]) => [team, rules.policies]));
  return { ...current, ...parts.get(NO_TEAM), policies: withParts(current.policies, policies) };
}

/** Does the remaining work: activates rules that have become allowed, and applies their effects. Called again and again. */
export async function advanceRules(deps: ActivateDeps, signal: AbortSignal): Promise<void> {
  const { sets, mode } = deps;
  const allowed = new Map<string, Rules>();
  for (const [team, { candidate }] of partStates(sets)) {
    // While nothing is written at all, the parts of teams wait for the part of no team.
    const isWaiting = mode === 'enforce' && sets.generation === undefined && !allowed.has(NO_TEAM);
    if (!candidate || (isWaiting && team !== NO_TEAM)) continue;
    if (await mayBecomeCurrent(deps, team, candidate, signal)) allowed.set(team, candidate.rules);
  }
  if (allowed.size > 0) await makeCurrent(deps, allowed);
  if (!sets.needsReevaluation) return;
  await reevaluateFleet(deps);
  sets.needsReevaluation = false;
}

async function mayBecomeCurrent(
  deps: ActivateDeps,
  team: string,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<boolean> {
  const rules = withRulesOf(deps, new Map([[team, candidate.rules]]));
  const all = partStates(deps.sets).flatMap(([name, state]) =>
    state.candidate ? [[name, state.candidate.rules] as const] : [],
  );
  const offered = [candidate.rules, rules, withRulesOf(deps, new Map(all))];
  if (await isAllowed(deps, offered)) return true;
  // The scopes that are current may still be those of before: these come with the part of no team.
  const scope = candidate.rules.teams.find(({ name }) => name === team);
  const isInScope = scope && compileSelector({ projects: scope.projects, minAgeMs: 0 });
  const isCounted = (compute: Compute) => isInScope?.(compute, Number.POSITIVE_INFINITY) !== 'no';
  const impact = candidate.impact ?? (await measureImpact(deps, rules, signal, isCounted));
  if (!impact) return false;
  if (!isTooMuch(impact)) return true;
  candidate.impact = impact;
  candidate.approvalHash = (await approvalOf(deps, offered)).hashes[0] ?? '';
  reportStaged(deps, candidate);
  return false;
}

/** May the current rules replace a generation that no daemon has any more? Their impact is counted like that of other rules. */
export async function mayTakeOver(
  deps: ActivateDeps,
  { decisionHash }: { decisionHash: string },
  signal: AbortSignal,
): Promise<boolean> {
  const { sets } = deps;
  const rules = currentRules(deps);
  if (await isAllowed(deps, [rules])) return true;
  const impact = sets.takeOver?.impact ?? (await measureImpact(deps, rules, signal));
  if (!impact) return false;
  if (!isTooMuch(impact)) return true;
  const { hashes } = await approvalOf(deps, [rules]);
  sets.takeOver ??= { decisionHash, rules, impact, approvalHash: hashes[0] ?? '' };
  reportStaged(deps, sets.takeOver);
  return false;
}

/**
 * Allowed without counting the impact: nothing is staged here, a person has approved one of these hashes, or a daemon of the group already
 * decides by the same rules.
 */
async function isAllowed(deps: ActivateDeps, offered: readonly Rules[]): Promise<boolean> {
  const { mode, sets, store } = deps;
  if (mode === 'observe' || !sets.stages) return true;
  const { current, isCurrent, hashes } = await approvalOf(deps, offered);
  if (isCurrent) return true;
  const isOne = (given: string) => hashes.some((hash) => names(given, hash));
  if ((await store.approvals()).some(({ hash }) => isOne(hash))) return true;
  const { accepted } = sets;
  if (!accepted || !isOne(accepted.hash)) return false;
  const reasons = [{ code: 'approved', message: `policy set ${accepted.hash} may become current: ebb run --accept` }];
  const place = { projectId: '', computeId: '', setHash: current?.setHash ?? '', atMs: await store.timeMs() };
  await store.appendHistory([{ ...place, kind: 'approve', ...accepted.caller, reasons }]);
  return true;
}

/**
 * The hashes by which a person may approve rules: those of their policies. Where the group has the same policies but decides differently,
 * an earlier approval does not cover the settings: then it is the decision hashes.
 */
async function approvalOf({ sets, store }: ActivateDeps, offered: readonly Rules[]) {
  const current = await store.generation();
  const identities = offered.map((rules) => identityOf(sets, rules));
  const isCurrent = identities.some(({ decisionHash }) => decisionHash === current?.decisionHash);
  const isSetCurrent = identities.some(({ setHash }) => setHash === current?.setHash);
  const byDecision = isSetCurrent && current?.decisionHash !== undefined;
  const hashes = identities.map(({ setHash, decisionHash }) => (byDecision ? decisionHash : setHash));
  return { current, isCurrent, hashes };
}

function names(given: string, hash: string): boolean {
  return given.length >= SHORTEST_HASH && hash.startsWith(given);
}

/** The generation first: from then on the daemons with the older set write nothing. An observing one is not in their way. */
async function makeCurrent(deps: ActivateDeps, parts: ReadonlyMap<string, Rules>): Promise<void> {
  const { sets, mode } = deps;
  const rules = withRulesOf(deps, parts);
  if (mode === 'enforce') await registerGeneration(deps, identityOf(sets, rules));
  for (const team of parts.keys()) stateOf(sets, team).candidate = undefined;
  swapRules(deps, rules);
}

/** One assignment: each decision uses the old rules throughout, or the new ones. */
export function swapRules(deps: ActivateDeps, rules: Rules): void {
  const { log, metrics } = deps.telemetry;
  deps.rules.current = compileRules(rules, deps.rules.current);
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

export function currentRules({ rules }: ActivateDeps): Rules {
  const { policies, ...others } = rules.current;
  return { policies: policies.set, ...others };
}

function reportStaged(deps: ActivateDeps, candidate: Candidate): void {
  const staged = stagedSets(deps).find(({ impact }) => impact === candidate.impact);
  if (candidate.isReported || !staged) return;
  candidate.isReported = true;
  const { team, hash, message, impact } = staged;
  deps.telemetry.log.warn({ event: 'ebb.policies_staged', ...ownerOf(team), hash, ...impact }, message);
}

/** One series for each current policy; those of policies that are gone vanish. */
export function showPolicies(metrics: Metrics, policies: readonly Policy[]): void {
  metrics.clear('ebb_policy_info');
  for (const { name, kind, mode, owner = '', file } of policies) {
    metrics.set('ebb_policy_info', { policy: name, kind, mode, owner, file }, 1);
  }
}

/** Projects evaluated before other work gets its turn. */
const PROJECTS_A_TURN = 20;

interface ReevaluateDeps extends EvaluateProjectDeps, ScheduleDeps {
  store: Store;
  overrides: Overrides;
  rhythm: { resyncMs: number };
}

/**
 * Evaluates every known compute again by changed rules, from its last reading; computes with a waiting change, and those that only other
 * daemons know, are reconciled. Boundaries that no compute has any more leave the queue. May be called again after a failure.
 */
async function reevaluateFleet(deps: ReevaluateDeps): Promise<void> {
  const { fleet, store, overrides, clock } = deps;
  await overrides.refresh(store, clock.now());
  const reevaluated = new Set<string>();
  let turn = 0;
  for (const cachedProject of [...fleet.cachedProjects()]) {
    turn += 1;
    if (turn % PROJECTS_A_TURN === 0) await clock.nextTurn();
    if (reevaluate(deps, cachedProject)) reevaluated.add(cachedProject.project.projectId);
  }
  await removeOldBoundaries(deps);
  await scheduleBoundaries(deps, fleet.evaluatedComputes());
  const known = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  for (const projectId of known) if (!reevaluated.has(projectId)) await requestReconcile(deps, projectId);
}

/** True if nothing is to be done, or stored, in the project. Its evaluations are exchanged all the same. */
function reevaluate(deps: ReevaluateDeps, cachedProject: CachedProject): boolean {
  const { fleet, clock } = deps;
  const { projectId } = cachedProject.project;
  if (lacksBranches(deps, projectId)) {
    // No list may confirm it either.
    fleet.see({ ...cachedProject, readAtMs: 0, readAtMonotonicMs: clock.monotonicMs() - FRESH_MS - 1 });
    return false;
  }
  const before = fleet.evaluatedOf(projectId);
  const records = new Map(before.map(({ compute, record }) => [compute.computeId, record]));
  const computes = before.map(({ compute }) => compute);
  const evaluatedComputes = evaluateProject(deps, computes, records);
  for (const evaluatedCompute of evaluatedComputes) fleet.putEvaluated(evaluatedCompute);
  return (
    before.length === cachedProject.computes.length &&
    evaluatedComputes.every(
      ({ plan, record, compute, decision }) => plan.verdict === 'none' && isRestoreUpToDate(record, compute, decision),
    )
  );
}

/**
 * Near boundaries stay, since other daemons may have put them there, for projects of their own, and would be late to put them back. A
 * stale boundary has no effect.
 */
async function removeOldBoundaries({
  queue,
  fleet,
  clock,
  rhythm,
  scheduledBoundaries,
}: ReevaluateDeps): Promise<void> {
  const soonMs = clock.now() + 2 * rhythm.resyncMs;
  const wanted = new Set([...fleet.evaluatedComputes()].map(({ nextBoundaryMs }) => nextBoundaryMs));
  for (const id of await queue.delayedIds('boundaries')) {
    const instantMs = Number(/^b-(\d+)$/.exec(id)?.[1]);
    // Wake jobs of single projects have no such id: they stay.
    if (Number.isNaN(instantMs) || instantMs <= soonMs || wanted.has(instantMs)) continue;
    scheduledBoundaries.delete(instantMs);
    await queue.remove('boundaries', id);
  }
}
