import type { Compute } from '../../domain/compute/compute.ts';
import { isHashOf, type Policy, type PolicySet, shortHash } from '../../domain/policy/policy.ts';
import { compileProjectSelector } from '../../domain/policy/select.ts';
import { hasUnloaded, NO_TEAM, teamPart, unloadedTeams, withParts } from '../../domain/policy/team-parts.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Approval } from '../../ports/store.ts';
import type { Metrics } from '../../ports/telemetry.ts';
import { type EvaluateProjectDeps, evaluateProject, isSettled } from '../evaluate-project/evaluate.ts';
import { invalidateReading } from '../fleet/cached-projects.ts';
import type { CachedProject } from '../fleet/fleet.ts';
import type { Overrides } from '../overrides.ts';
import { type Approvers, compileRules } from '../rules.ts';
import { requestReconcile, type ScheduleDeps, scheduleBoundaries } from '../triggers.ts';
import { announceApproved, approversOf } from './announce-approved.ts';
import { describeDelay, isBeingWritten } from './delayed-reading.ts';
import { lacksBranches, type MeasureImpactDeps, measureImpact, needsApproval } from './disruption-impact.ts';
import { identityOf, registerGeneration } from './generations.ts';
import { lastParts } from './stored-parts.ts';
import { type Candidate, ownerField, partStates, type SetsDeps, stagedSets, stateOf } from './write-permission.ts';

/** How many of the last sets that became current are remembered. */
const MAX_REMEMBERED = 20;

export interface ActivateDeps extends SetsDeps, MeasureImpactDeps, EvaluateProjectDeps, ScheduleDeps {
  clock: Clock;
  overrides: Overrides;
  rhythm: { resyncMs: number };
}

/**
 * Starts with the rules of the files, which are current already. Usually this daemon may write by them at once. They become candidates first if
 * their impact must be counted, or if they are new to the group and their files may be incomplete. Then the part of each team waits separately,
 * and the team keeps the policies that were last in effect. So does a team whose files can't be read. If none are stored, nothing is written to
 * the team's computes.
 */
export async function startWithRules(deps: ActivateDeps): Promise<void> {
  const { sets, mode } = deps;
  if (mode === 'observe') return;
  await chooseRules(deps);
  if (sets.stages) await rememberApproval(deps);
}

/** Reads from the store who approved the rules: after a restart of the daemon, approved restarts may still wait for limits and operations. */
async function rememberApproval(deps: ActivateDeps): Promise<void> {
  const rules = currentRules(deps);
  const parts = rules.teams.map(({ name }) => ({ ...rules, policies: teamPart(rules.policies, name) }));
  const approvals = await approvalsOf(deps, [rules, ...parts]);
  const [last] = approvals;
  if (!last) return;
  const approved = { hash: rules.policies.hash, currentSinceMs: last.atMs, approver: approverOf(approvals) };
  deps.rules.current = { ...deps.rules.current, becameCurrent: [approved] };
}

async function chooseRules(deps: ActivateDeps): Promise<void> {
  const { sets } = deps;
  const fileRules = currentRules(deps);
  const { teams } = fileRules;
  for (const { name } of teams) stateOf(sets, name);
  const before = await lastParts(deps, teams);
  const unread = new Set(unloadedTeams(fileRules.policies));
  const unreadParts = new Map([...before].filter(([team]) => unread.has(team)));
  const rules =
    unreadParts.size === 0 ? fileRules : { ...fileRules, policies: withParts(fileRules.policies, unreadParts) };
  const use = (policies: PolicySet) => {
    deps.rules.current = compileRules({ ...rules, policies }, deps.rules.current);
  };
  if (!(await mayBeIncomplete(deps, rules)) && (await isAllowed(deps, [rules]))) {
    if (rules !== fileRules) use(rules.policies);
    await registerRules(deps, rules);
    return;
  }
  sets.candidate = { rules: { ...rules, policies: teamPart(rules.policies, NO_TEAM) } };
  for (const [name, { hash }] of before) {
    const part = teamPart(rules.policies, name);
    if (part.hash !== hash) stateOf(sets, name).candidate = { rules: { ...rules, policies: part } };
  }
  if (teams.length > 0) use(withParts(rules.policies, before));
}

/** Returns true if a file was written just now, and the group decides by other rules: the file may be incomplete. */
async function mayBeIncomplete({ sets, store, clock, telemetry }: ActivateDeps, rules: Rules): Promise<boolean> {
  if (!isBeingWritten(sets.changedAt, clock.monotonicMs())) return false;
  const current = await store.generation();
  const { decisionHash, setHash: hash } = identityOf(sets, rules);
  if (current === undefined || current.decisionHash === decisionHash) return false;
  telemetry.log.info({ event: 'ebb.policies_delayed', hash, vanished: [] }, describeDelay([]));
  return true;
}

/** Replaces parts of the current rules, by team. The settings come with the part that belongs to no team ({@link NO_TEAM}). */
export function withRulesOf(deps: ActivateDeps, parts: ReadonlyMap<string, Rules>): Rules {
  const current = currentRules(deps);
  const policies = new Map([...parts].map(([team, rules]) => [team, rules.policies]));
  return { ...current, ...parts.get(NO_TEAM), policies: withParts(current.policies, policies) };
}

/** Makes the allowed candidates current, reports staged ones, and evaluates the fleet if the rules have changed. Called in each round. */
export async function advanceRules(deps: ActivateDeps, signal: AbortSignal): Promise<void> {
  const { sets, mode, clock } = deps;
  const isStarting = mode === 'enforce' && sets.generation === undefined;
  if (isStarting && isBeingWritten(sets.changedAt, clock.monotonicMs())) return;
  const allowed = new Map<string, Rules>();
  for (const [team, { candidate }] of partStates(sets)) {
    // Before the first activation, the parts of teams wait for the part that belongs to no team.
    const isWaiting = isStarting && !allowed.has(NO_TEAM);
    if (!candidate || (isWaiting && team !== NO_TEAM)) continue;
    if (await mayBecomeCurrent(deps, team, candidate, signal)) allowed.set(team, candidate.rules);
  }
  if (allowed.size > 0) await makeCurrent(deps, allowed);
  // The message about a staged part depends on the rules that are in effect by now.
  for (const [, { candidate }] of partStates(sets)) reportStaged(deps, candidate);
  if (!sets.needsReevaluation) return;
  // Rules that change during the evaluation need another one.
  sets.needsReevaluation = false;
  try {
    await reevaluateFleet(deps);
  } catch (error) {
    sets.needsReevaluation = true;
    throw error;
  }
}

/** Returns true if the candidate is allowed, or its impact needs no approval. Otherwise notes in the candidate what it waits for. */
async function mayBecomeCurrent(
  deps: ActivateDeps,
  team: string,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<boolean> {
  const rules = withRulesOf(deps, new Map([[team, candidate.rules]]));
  const candidates = partStates(deps.sets).flatMap(([name, state]) =>
    state.candidate ? [[name, state.candidate.rules] as const] : [],
  );
  const candidateRules = [candidate.rules, rules, withRulesOf(deps, new Map(candidates))];
  if (await isAllowed(deps, candidateRules)) {
    candidate.isUncounted = false;
    return true;
  }
  // The team's scope comes from the candidate: the current scopes change only with the part that belongs to no team.
  const scope = candidate.rules.teams.find(({ name }) => name === team);
  const isInScope = scope && compileProjectSelector(scope);
  const isCounted = (compute: Compute) => isInScope?.(compute) !== 'no';
  const impact = candidate.impact ?? (await measureImpact(deps, rules, signal, isCounted));
  candidate.isUncounted = !impact;
  if (!impact) return false;
  if (!needsApproval(impact)) return true;
  candidate.impact = impact;
  candidate.approvalHash = (await approvalOf(deps, candidateRules)).hashes[0] ?? '';
  return false;
}

/** Returns true if this daemon's rules may replace a generation that no daemon has any more. Their impact is counted as for new rules. */
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
  if (!needsApproval(impact)) return true;
  const { hashes } = await approvalOf(deps, [rules]);
  sets.takeOver ??= { decisionHash, rules, impact, approvalHash: hashes[0] ?? '' };
  reportStaged(deps, sets.takeOver);
  return false;
}

/**
 * Returns true if rules may become current without counting their impact: staging is off, a person has approved one of their hashes, or a
 * daemon of the group already decides by the same rules.
 */
async function isAllowed(deps: ActivateDeps, offered: readonly Rules[]): Promise<boolean> {
  const { mode, sets, store } = deps;
  if (mode === 'observe' || !sets.stages) return true;
  const { current, isCurrent, hashes } = await approvalOf(deps, offered);
  if (isCurrent) return true;
  const isOffered = isOneOf(hashes);
  if ((await store.approvals()).some(({ hash }) => isOffered(hash))) return true;
  const { accepted } = sets;
  if (!accepted || !isOffered(accepted.hash)) return false;
  const reasons = [{ code: 'approved', message: `policy set ${accepted.hash} may become current: ebb run --accept` }];
  const entry = { projectId: '', computeId: '', setHash: current?.setHash ?? '', atMs: await store.timeMs() };
  await store.appendHistory([{ ...entry, kind: 'approve', ...accepted.caller, reasons }]);
  return true;
}

/**
 * Returns the hashes by which a person may approve the offered rules. Usually these are the hashes of their policies. If the group has the same
 * policies with other settings, they are the decision hashes, since an earlier approval of the policies does not cover the settings.
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

/** Returns a test that is true for one of these hashes, or for a prefix of one. */
function isOneOf(hashes: readonly string[]): (given: string) => boolean {
  return (given) => hashes.some((hash) => isHashOf(given, hash));
}

/**
 * Makes rules current, unless the announced restarts by an approved set are not due yet. Registers the generation first, so that daemons with
 * the older set write nothing from then on. An observing daemon registers none.
 */
async function makeCurrent(deps: ActivateDeps, parts: ReadonlyMap<string, Rules>): Promise<void> {
  const { sets, mode } = deps;
  const rules = withRulesOf(deps, parts);
  const offered = [...parts.values(), rules];
  const isApprovable = mode === 'enforce' && sets.stages;
  const approvals = isApprovable ? await approvalsOf(deps, offered) : [];
  if (await waitsForAnnouncement(deps, offered, approvals)) return;
  if (mode === 'enforce') await registerRules(deps, rules);
  for (const team of parts.keys()) stateOf(sets, team).candidate = undefined;
  swapRules(deps, rules, isApprovable ? (acceptedBy(deps, offered) ?? approverOf(approvals)) : undefined);
}

function acceptedBy(deps: ActivateDeps, offered: readonly Rules[]): Approvers | undefined {
  const { accepted } = deps.sets;
  const isAccepted = accepted && isOneOf(hashesOf(deps, offered))(accepted.hash);
  return isAccepted ? { who: accepted.caller.who } : undefined;
}

function approverOf(approvals: readonly Approval[]): Approvers | undefined {
  if (approvals.length === 0) return undefined;
  return { who: approversOf(approvals), atMs: approvals.map(({ atMs }) => atMs) };
}

/**
 * Returns true until the announced restarts by approved rules (the last of `offered`) are due. Announces them first, unless another daemon has
 * the rules already, which has announced them.
 */
async function waitsForAnnouncement(
  deps: ActivateDeps,
  offered: readonly Rules[],
  approvals: readonly Approval[],
): Promise<boolean> {
  const rules = offered.at(-1);
  if (!rules || approvals.length === 0 || rules.notify.receivers.length === 0) return false;
  return !(await approvalOf(deps, offered)).isCurrent && announceApproved(deps, rules, approvals);
}

/** Returns the stored approvals of any of these rules, the latest first. */
async function approvalsOf(deps: ActivateDeps, offered: readonly Rules[]): Promise<Approval[]> {
  const isOffered = isOneOf(hashesOf(deps, offered));
  const approvals = (await deps.store.approvals()).filter(({ hash }) => isOffered(hash));
  return approvals.toSorted((a, b) => b.atMs - a.atMs);
}

function hashesOf({ sets }: ActivateDeps, offered: readonly Rules[]): string[] {
  return offered.flatMap((rules) => {
    const { setHash, decisionHash } = identityOf(sets, rules);
    return [setHash, decisionHash];
  });
}

/** Registers rules as a generation. Without a team's policies, they replace only this daemon's own one: another daemon may have these policies. */
async function registerRules(deps: ActivateDeps, rules: Rules): Promise<void> {
  const { sets } = deps;
  const identity = identityOf(sets, rules);
  if (!hasUnloaded(rules.policies)) return registerGeneration(deps, identity);
  // By these rules, the log line about a newer generation names the teams whose policies they lack.
  const current = compileRules(rules, deps.rules.current);
  return registerGeneration({ ...deps, rules: { current } }, identity, sets.generation ?? 0);
}

/** Replaces the rules in one assignment, so that each decision uses either the old or the new rules throughout. */
export function swapRules(deps: ActivateDeps, rules: Rules, approver?: Approvers): void {
  const { log, metrics } = deps.telemetry;
  const { becameCurrent = [] } = deps.rules.current;
  const newest = { hash: rules.policies.hash, currentSinceMs: deps.clock.now(), approver };
  deps.rules.current = {
    ...compileRules(rules, deps.rules.current),
    becameCurrent: [newest, ...becameCurrent].slice(0, MAX_REMEMBERED),
  };
  deps.sets.needsReevaluation = true;
  exportPolicies(metrics, rules.policies.policies);
  const { policies, hash } = rules.policies;
  const { generation } = deps.sets;
  const names = policies.map(({ name }) => name);
  log.info(
    { event: 'ebb.policies_loaded', hash, generation, revision: rules.revision, policies: names },
    `policy set ${shortHash(hash)} is current: ${policies.length} policies`,
  );
}

/** Returns the current rules in the uncompiled form in which they are read from files. */
export function currentRules({ rules }: ActivateDeps): Rules {
  const { policies, becameCurrent: _, ...others } = rules.current;
  return { policies: policies.set, ...others };
}

function reportStaged(deps: ActivateDeps, candidate: Candidate | undefined): void {
  const staged = stagedSets(deps).find(({ impact }) => impact === candidate?.impact);
  if (!candidate || candidate.isReported || !staged) return;
  candidate.isReported = true;
  const { team, hash, message, impact } = staged;
  const { disconnected, computes } = impact;
  deps.telemetry.log.warn({ event: 'ebb.policies_staged', ...ownerField(team), hash, disconnected, computes }, message);
}

export function exportPolicies(metrics: Metrics, policies: readonly Policy[]): void {
  metrics.clear('ebb_policy_info');
  for (const { name, kind, mode, owner = '', file } of policies) {
    metrics.set('ebb_policy_info', { policy: name, kind, mode, owner, file }, 1);
  }
}

/** How many projects are evaluated before other work gets its turn. */
const PROJECTS_PER_TURN = 20;

/**
 * Evaluates every known compute by the changed rules, from its last reading. Requests a reconcile of projects with a change to make and of
 * projects that only other daemons know. Removes boundaries that no compute has any more. May be repeated after a failure.
 */
async function reevaluateFleet(deps: ActivateDeps): Promise<void> {
  const { fleet, store, overrides, clock } = deps;
  await overrides.refresh(store, clock.now());
  const reevaluated = new Set<string>();
  for (const [index, cachedProject] of [...fleet.cachedProjects()].entries()) {
    if (index > 0 && index % PROJECTS_PER_TURN === 0) await clock.nextTurn();
    if (reevaluate(deps, cachedProject)) reevaluated.add(cachedProject.project.projectId);
  }
  await removeOldBoundaries(deps);
  await scheduleBoundaries(deps, fleet.evaluatedComputes());
  const projectIds = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  for (const projectId of projectIds) if (!reevaluated.has(projectId)) await requestReconcile(deps, projectId);
}

/** Evaluates a project again. Returns true if it needs no reconcile. */
function reevaluate(deps: ActivateDeps, cachedProject: CachedProject): boolean {
  const { fleet } = deps;
  const { projectId } = cachedProject.project;
  if (lacksBranches(deps, projectId)) {
    invalidateReading(deps, projectId);
    return false;
  }
  const before = fleet.ownEvaluations(projectId);
  const records = new Map(before.map(({ compute, record }) => [compute.computeId, record]));
  const computes = before.map(({ compute }) => compute);
  const evaluatedComputes = evaluateProject(deps, computes, records);
  for (const evaluatedCompute of evaluatedComputes) fleet.putEvaluated(evaluatedCompute);
  if (before.length !== cachedProject.computes.length) return false;
  return evaluatedComputes.every((evaluated) => isSettled(deps.mode, evaluated));
}

/**
 * Removes boundary jobs that no compute needs any more. Jobs of near boundaries stay, since other daemons may need them for their projects and
 * could not add them again in time. A job without an affected compute has no effect.
 */
async function removeOldBoundaries(deps: ActivateDeps): Promise<void> {
  const { queue, fleet, clock, rhythm, scheduledBoundaries } = deps;
  const soonMs = clock.now() + 2 * rhythm.resyncMs;
  const nextBoundariesMs = new Set([...fleet.evaluatedComputes()].map(({ nextBoundaryMs }) => nextBoundaryMs));
  for (const id of await queue.delayedIds('boundaries')) {
    const instantMs = Number(/^b-(\d+)$/.exec(id)?.[1]);
    // The wake jobs of single projects have other ids, and stay.
    if (Number.isNaN(instantMs) || instantMs <= soonMs || nextBoundariesMs.has(instantMs)) continue;
    scheduledBoundaries.delete(instantMs);
    await queue.remove('boundaries', id);
  }
}
