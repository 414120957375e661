import { filterInTurns, mapInTurns } from '../../common/in-turns.ts';
import { countBy } from '../../domain/grouping.ts';
import { type Freeze, mayConcern } from '../../domain/overrides/freezes.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import { AT_ANY_AGE, compileSelector } from '../../domain/policy/select.ts';
import { isNotLoaded, NO_TEAM } from '../../domain/policy/team-parts.ts';
import { degradedFailures } from '../../domain/records/failures.ts';
import { stoppedGroups } from '../../domain/records/fights.ts';
import type { BudgetState } from '../../domain/spend/state.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CostsDocument } from '../../ports/cost-documents.ts';
import { MAX_LISTED, type StatusDocument } from '../../ports/documents.ts';
import type { OperatorResult, StatusQuery } from '../../ports/operator.ts';
import type { LocatedRecord, Store } from '../../ports/store.ts';
import { frozenTest, statusOf } from '../evaluate-project/compute-status.ts';
import { budgetDocument, readBudgets } from '../usage/budget-store.ts';
import { readSummary, summaryOfOwner } from '../usage/cost-summary.ts';
import { isApproved, readReports, reportedLimits, reportedProblems, reportedRefusals } from './daemon-reports.ts';
import { countWaiting, freezeDocument, holdDocument, operationsOf, projectsOf, unmetOf } from './documents.ts';
import { isNarrowed, matchingComputes } from './fleet-page.ts';
import { guardStatus } from './guard-status.ts';
import { limitsOf } from './holds.ts';
import { allRecords, type DaemonView, fail, type OperatorParts } from './parts.ts';

type FrozenTest = ReturnType<typeof frozenTest>;
type NextTurn = Pick<Clock, 'nextTurn'>;

/** Returns the status summary, from the daemon if there is one, else from the store. */
export async function status(parts: OperatorParts, query: StatusQuery = {}): Promise<OperatorResult<StatusDocument>> {
  const { store, clock } = parts;
  const isFiltered = isNarrowed(query) || query.select !== undefined;
  if (isFiltered && !parts.daemon)
    return fail('unavailable', 'a store does not know which computes match: ask a daemon with --url');
  const summary = (await readSummary(store)) ?? null;
  const problem = parts.daemon && (await unknownOwner(parts.daemon, summary, query.owner, clock));
  if (problem !== undefined) return fail('invalid', problem);
  const daemon: ShownView | undefined =
    isFiltered && parts.daemon ? await narrowed({ ...parts, daemon: parts.daemon }, query) : parts.daemon;
  const nowMs = await parts.now();
  const [allHolds, freezes] = await Promise.all([store.holds(nowMs), store.freezes(nowMs)]);
  const shownIds = new Set(isFiltered && daemon ? recordsOf(daemon).map(({ computeId }) => computeId) : []);
  const holds = allHolds.filter(({ computeId }) => !isFiltered || shownIds.has(computeId)).slice(0, MAX_LISTED);
  const records = daemon ? recordsOf(daemon) : await allRecords(store);
  const concerns = concernsSome(isFiltered ? daemon : undefined);
  const limitOf = await limitsOf(parts, holds);
  const value: StatusDocument = {
    at: isoInstant(nowMs),
    holds: holds.map((hold) => holdDocument(hold, limitOf(hold))),
    freezes: freezes.filter(concerns).slice(0, MAX_LISTED).map(freezeDocument),
    stopped_fights: stoppedFights(records),
    degraded: degraded(records),
    operations: operationsOf(records).slice(0, MAX_LISTED),
    costs: summary && costsFor(summary, query),
    budgets: budgetsFor((await readBudgets(store)) ?? [], query, daemon).map((state) => budgetDocument(state, nowMs)),
    dead_notifications: await deadNotifications(parts),
    ...(daemon
      ? {
          ...(await daemonStatus(daemon, frozenTest(freezes, nowMs), clock)),
          ...(await stagedDocuments(daemon, store)),
          ...(await guardsShown(store, daemon, nowMs)),
        }
      : await storeStatus(parts, records, nowMs)),
  };
  return { ok: true, value };
}

async function deadNotifications({ store }: OperatorParts): Promise<StatusDocument['dead_notifications']> {
  const { receivers } = await store.outboxCounts();
  return receivers.flatMap(({ receiver, dead }) => (dead > 0 ? [{ receiver, count: dead }] : []));
}

async function daemonStatus(daemon: ShownView, isFrozen: FrozenTest, clock: NextTurn) {
  const { set } = daemon.policies();
  const projects = projectsOf(daemon.fleet);
  return {
    source: 'daemon' as const,
    mode: daemon.mode,
    set_hash: set.hash,
    revision: daemon.revision() ?? null,
    policies: set.policies
      .filter((policy) => !isNotLoaded(policy) && isConcerned(daemon, policy.name))
      .map(({ name, kind, mode, owner = null }) => ({ name, kind, mode, owner })),
    computes: await countStatuses(daemon, isFrozen, clock),
    unread_projects: projects.listed - projects.read,
    projects,
    waiting: countWaiting(daemon),
    unmet_headroom: unmetOf(daemon),
    manual_changes: manualChangesOf(daemon),
    policy_problems: daemon.policyProblems().slice(0, MAX_LISTED),
    readiness: await daemon.readiness(),
    facts: daemon.facts(),
    herds: [...daemon.herds()],
    api_limits: daemon.apiLimits(),
    refused_projects: daemon.refusedProjects().slice(0, MAX_LISTED),
    daemons: null,
  };
}

async function guardsShown(store: Store, daemon: ShownView, nowMs: number) {
  const { guards, ...others } = await guardStatus(store, daemon, nowMs);
  return { guards: guards?.filter(({ guard }) => isConcerned(daemon, guard)) ?? null, ...others };
}

/** Returns the status from the store and the first report. It is the leader's, if there is one: others may know only a part of the fleet. */
async function storeStatus({ store }: OperatorParts, records: readonly LocatedRecord[], nowMs: number) {
  const daemons = await readReports(store, nowMs);
  const [first] = daemons;
  return {
    source: 'store' as const,
    mode: first?.mode ?? null,
    set_hash: (await store.generation())?.setHash ?? null,
    revision: null,
    computes: { known: records.length, degraded: records.filter(isFailing).length },
    waiting: first?.waiting ?? [],
    unmet_headroom: first?.unmet_headroom ?? null,
    policies: null,
    staged: null,
    staged_teams: [],
    policy_problems: reportedProblems(daemons, nowMs)?.slice(0, MAX_LISTED) ?? null,
    manual_changes: null,
    guards: null,
    guard_watches: null,
    guard_floors: null,
    readiness: null,
    unread_projects: null,
    projects: first?.projects ?? null,
    facts: first?.facts ?? null,
    herds: first?.herds ?? null,
    api_limits: reportedLimits(daemons, nowMs),
    refused_projects: reportedRefusals(daemons, nowMs)?.slice(0, MAX_LISTED) ?? null,
    daemons,
  };
}

/** Returns the error for an owner that owns nothing; undefined if the owner owns something, or none is given. */
async function unknownOwner(
  daemon: DaemonView,
  costs: CostsDocument | null,
  owner: string | undefined,
  clock: NextTurn,
): Promise<string | undefined> {
  if (owner === undefined) return undefined;
  const computes = [...daemon.fleet.evaluatedComputes()].map(({ compute }) => compute);
  const ownerOf = computeOwners({ rules: daemon.owners(), policies: daemon.policies(), computes });
  const ofComputes = await mapInTurns(computes, ownerOf, clock);
  const owners = new Set([...ofComputes, ...(costs?.owners ?? []).map((one) => one.owner)]);
  return owners.has(owner) ? undefined : `nothing belongs to ${owner}; owners are ${[...owners].sort().join(', ')}`;
}

/** Returns the budgets of a policy or owner, or all. Returns none for other filters, since the matching computes may belong to several budgets. */
function budgetsFor(
  states: readonly BudgetState[],
  { owner, policy, select, ...others }: StatusQuery,
  daemon: DaemonView | undefined,
): readonly BudgetState[] {
  if (select !== undefined || isNarrowed(others)) return [];
  const ofPolicy = policy === undefined ? states : states.filter((one) => one.policy === policy);
  if (owner === undefined) return ofPolicy;
  const policies = policiesOfKind(daemon?.policies().set.policies ?? [], 'budget');
  const names = new Set(policies.filter((one) => one.owner === owner).map(({ name }) => name));
  return ofPolicy.filter((one) => names.has(one.policy));
}

/** Returns the costs of an owner, or all. Returns null for any other filter, since costs are summed by owner only. */
function costsFor(costs: CostsDocument, { owner, select, ...others }: StatusQuery): CostsDocument | null {
  if (select !== undefined || isNarrowed(others)) return null;
  return owner === undefined ? costs : summaryOfOwner(costs, owner);
}

/** Returns a test for freezes that may concern a compute of the view. Without a view all freezes pass. */
function concernsSome(daemon: DaemonView | undefined): (freeze: Freeze) => boolean {
  if (!daemon) return () => true;
  return ({ select }) => [...daemon.fleet.evaluatedComputes()].some(({ compute }) => mayConcern(select)(compute));
}

interface ShownView extends DaemonView {
  /** The names of the policies to show: those that select one of the computes, or belong to the owner; if absent, all. */
  concerned?: ReadonlySet<string>;
}

function isConcerned({ concerned }: ShownView, policy: string): boolean {
  return concerned?.has(policy) ?? true;
}

/** Returns a view of the daemon with the matching computes, and with the policies, staged sets, problems and refused projects that concern them. */
async function narrowed(
  parts: OperatorParts & { daemon: DaemonView },
  { select, q = '', ...filter }: StatusQuery,
): Promise<ShownView> {
  const { daemon, clock } = parts;
  const { owner } = filter;
  const matches = select && compileSelector(select);
  const computes = await filterInTurns(
    await matchingComputes(parts, { q, ...filter }),
    ({ compute }) => !matches || matches(compute, AT_ANY_AGE) === 'yes',
    clock,
  );
  const policies = daemon.policies();
  const selecting = new Set(computes.flatMap(({ compute }) => policies.selecting(compute)));
  const concerned = policies.set.policies.filter(
    (policy, index) => selecting.has(index) || (owner !== undefined && policy.owner === owner),
  );
  const projects = new Set(computes.map(({ compute }) => compute.projectId));
  const teams = new Set([NO_TEAM, owner, ...concerned.map(({ team }) => team)]);
  return {
    ...daemon,
    fleet: { ...daemon.fleet, evaluatedComputes: () => computes },
    refusedProjects: () => daemon.refusedProjects().filter((one) => projects.has(one.project_id)),
    staged: () => daemon.staged().filter(({ team }) => teams.has(team)),
    policyProblems: () => daemon.policyProblems((team) => teams.has(team)),
    concerned: new Set(concerned.map(({ name }) => name)),
  };
}

/** Returns the staged sets that nobody has approved yet. An approved set stays staged until the daemon's next round. */
async function stagedDocuments(
  daemon: DaemonView,
  store: Pick<Store, 'approvals'>,
): Promise<Pick<StatusDocument, 'staged' | 'staged_teams'>> {
  const all = daemon.staged();
  const approvals = all.length > 0 ? await store.approvals() : [];
  const staged = all
    .filter((one) => !isApproved(one, approvals))
    .map(({ team: owner, hash, setHash, message }) => ({ owner, hash, set_hash: setHash, message }));
  const withoutTeam = staged.find(({ owner }) => owner === NO_TEAM);
  return {
    staged: withoutTeam
      ? { hash: withoutTeam.hash, set_hash: withoutTeam.set_hash, message: withoutTeam.message }
      : null,
    staged_teams: staged.filter((one) => one !== withoutTeam),
  };
}

function recordsOf({ fleet }: DaemonView): LocatedRecord[] {
  return [...fleet.evaluatedComputes()].map(({ compute: { projectId, computeId }, record }) => ({
    projectId,
    computeId,
    record,
  }));
}

function stoppedFights(records: readonly LocatedRecord[]): StatusDocument['stopped_fights'] {
  const stopped = records.flatMap(({ projectId, computeId, record }) => {
    const fields = stoppedGroups(record);
    return fields.length === 0 ? [] : [{ project_id: projectId, compute_id: computeId, fields }];
  });
  return stopped.slice(0, MAX_LISTED);
}

function isFailing({ record }: LocatedRecord): boolean {
  return degradedFailures(record).length > 0;
}

function degraded(records: readonly LocatedRecord[]): StatusDocument['degraded'] {
  const failing = records.filter(isFailing).slice(0, MAX_LISTED);
  return failing.map(({ projectId, computeId, record }) => ({
    project_id: projectId,
    compute_id: computeId,
    message: [...new Set(degradedFailures(record).map(({ message }) => message))].join('; '),
  }));
}

function manualChangesOf({ fleet }: DaemonView): NonNullable<StatusDocument['manual_changes']> {
  const changed = [...fleet.evaluatedComputes()].flatMap(({ compute: { projectId, computeId }, plan }) =>
    plan.waiting
      .filter(({ gate }) => gate.code === 'manual_change')
      .map(({ gate: { message } }) => ({ project_id: projectId, compute_id: computeId, message })),
  );
  return changed.slice(0, MAX_LISTED);
}

/** Counts the computes by status, the most frequent status first; equal counts are ordered by name. */
async function countStatuses(
  daemon: DaemonView,
  isFrozen: FrozenTest,
  clock: NextTurn,
): Promise<Record<string, number>> {
  const computes = [...daemon.fleet.evaluatedComputes()];
  const statuses = await mapInTurns(computes, (evaluated) => statusOf(daemon, evaluated, isFrozen), clock);
  const counts = [...countBy(statuses, (status) => status)];
  return Object.fromEntries(counts.sort(([a, many], [b, few]) => few - many || a.localeCompare(b)));
}
