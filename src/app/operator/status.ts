import { filterInTurns, mapInTurns } from '../../common/in-turns.ts';
import { describeStep } from '../../domain/decide/trace.ts';
import { type Freeze, mayConcern } from '../../domain/overrides/freezes.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import { NO_TEAM } from '../../domain/policy/team-parts.ts';
import { isDegraded, worstFailures } from '../../domain/records/failures.ts';
import { stoppedGroups } from '../../domain/records/fights.ts';
import type { BudgetState } from '../../domain/spend/state.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CostsDocument } from '../../ports/cost-documents.ts';
import type { StatusDocument } from '../../ports/documents.ts';
import type { OperatorResult, StatusQuery } from '../../ports/operator.ts';
import { frozenTest, statusOf } from '../evaluate-project/compute-status.ts';
import { budgetDocument, readBudgets } from '../usage/budget-store.ts';
import { readSummary, summaryOfOwner } from '../usage/cost-summary.ts';
import { readReports } from './daemon-reports.ts';
import { countWaiting, freezeDocument, holdDocument, MOST_SHOWN, operationsOf, unmetOf } from './documents.ts';
import { isNarrowed, matchingComputes } from './fleet-page.ts';
import { limitsOf } from './hold-limits.ts';
import { allRecords, type DaemonView, fail, type KnownRecord, type OperatorParts } from './parts.ts';

type NextTurn = Pick<Clock, 'nextTurn'>;

/** The status summary: from the daemon where there is one, else from the store. */
export async function status(parts: OperatorParts, query: StatusQuery = {}): Promise<OperatorResult<StatusDocument>> {
  const { store, clock } = parts;
  const isFiltered = isNarrowed(query) || query.select !== undefined;
  if (isFiltered && !parts.daemon)
    return fail('unavailable', 'only a daemon knows whose computes are: ask it by --url');
  const summary = await readSummary(store);
  const unknown = parts.daemon && (await unknownOwner(parts.daemon, summary, query.owner, clock));
  if (unknown !== undefined) return fail('invalid', unknown);
  const daemon = isFiltered && parts.daemon ? await withSome({ ...parts, daemon: parts.daemon }, query) : parts.daemon;
  const nowMs = await parts.now();
  const [allHolds, freezes] = await Promise.all([store.holds(nowMs), store.freezes(nowMs)]);
  const shown = new Set(isFiltered && daemon ? recordsOf(daemon).map(({ computeId }) => computeId) : []);
  const holds = allHolds.filter(({ computeId }) => !isFiltered || shown.has(computeId));
  const known = daemon ? recordsOf(daemon) : await allRecords(parts.store);
  const concerns = concernsSome(isFiltered ? daemon : undefined);
  const limitOf = await limitsOf(parts);
  const shared = {
    at: isoInstant(nowMs),
    holds: holds.slice(0, MOST_SHOWN).map((hold) => holdDocument(hold, limitOf(hold))),
    freezes: freezes.filter(concerns).slice(0, MOST_SHOWN).map(freezeDocument),
    stopped_fights: stoppedFights(known),
    degraded: degraded(known),
    operations: operationsOf(known).slice(0, MOST_SHOWN),
    costs: summary && costsFor(summary, query),
    budgets: budgetsFor((await readBudgets(store)) ?? [], query, daemon).map((state) => budgetDocument(state, nowMs)),
    dead_notifications: await deadNotifications(parts),
  };
  const own = daemon ? await ofDaemon(daemon, freezes, nowMs, clock) : await ofStore(parts, known, nowMs);
  return { ok: true, value: { ...shared, ...own } };
}

async function deadNotifications({ store }: OperatorParts): Promise<StatusDocument['dead_notifications']> {
  const { receivers } = await store.outboxCounts();
  return receivers.flatMap(({ receiver, dead }) => (dead > 0 ? [{ receiver, count: dead }] : []));
}

type Shared =
  | 'at'
  | 'holds'
  | 'freezes'
  | 'stopped_fights'
  | 'degraded'
  | 'operations'
  | 'costs'
  | 'budgets'
  | 'dead_notifications';

async function ofDaemon(
  daemon: DaemonView,
  freezes: readonly Freeze[],
  nowMs: number,
  clock: NextTurn,
): Promise<Omit<StatusDocument, Shared>> {
  const { set } = daemon.policies();
  return {
    source: 'daemon',
    mode: daemon.mode,
    set_hash: set.hash,
    revision: daemon.revision() ?? null,
    policies: set.policies.map(({ name, kind, mode, owner = null }) => ({ name, kind, mode, owner })),
    computes: await countStatuses(daemon, frozenTest(freezes, nowMs), clock),
    unread_projects: daemon.fleet.projectIds().filter((id) => !daemon.fleet.cachedProject(id)).length,
    waiting: countWaiting(daemon),
    unmet_headroom: unmetOf(daemon),
    manual_changes: manualChangesOf(daemon),
    guard_floors: floorsOf(daemon),
    ...stagedDocuments(daemon),
    policy_problems: daemon.policyProblems().slice(0, MOST_SHOWN),
    readiness: await daemon.readiness(),
    facts: daemon.facts(),
    daemons: null,
  };
}

/** The status from the store, and from the leader's report there: the leader has the whole fleet, other daemons may have a part. */
async function ofStore(
  { store }: OperatorParts,
  known: readonly KnownRecord[],
  nowMs: number,
): Promise<Omit<StatusDocument, Shared>> {
  const daemons = await readReports(store, nowMs);
  const [first] = daemons;
  const failed = known.filter(({ record }) => isDegraded(worstFailures(record)));
  return {
    source: 'store',
    mode: first?.mode ?? null,
    set_hash: (await store.generation())?.setHash ?? null,
    revision: null,
    computes: { known: known.length, degraded: failed.length },
    waiting: first?.waiting ?? [],
    unmet_headroom: first?.unmet_headroom ?? null,
    policies: null,
    staged: null,
    staged_teams: [],
    policy_problems: null,
    manual_changes: null,
    guard_floors: null,
    readiness: null,
    unread_projects: null,
    facts: first?.facts ?? null,
    daemons,
  };
}

/** Why nothing can be shown of an owner; undefined if there is one of this name, or none is asked for. */
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

/** Budgets have an owner; what a selector names is part of several, so it has none. */
function budgetsFor(
  states: readonly BudgetState[],
  { owner, select }: StatusQuery,
  daemon: DaemonView | undefined,
): readonly BudgetState[] {
  if (select !== undefined) return [];
  if (owner === undefined) return states;
  const policies = policiesOfKind(daemon?.policies().set.policies ?? [], 'budget');
  const names = new Set(policies.filter((one) => one.owner === owner).map(({ name }) => name));
  return states.filter(({ policy }) => names.has(policy));
}

/** Costs are known by owner alone: not of computes that a selector names. */
function costsFor(costs: CostsDocument, { owner, select, ...others }: StatusQuery): CostsDocument | null {
  if (select !== undefined || isNarrowed(others)) return null;
  return owner === undefined ? costs : summaryOfOwner(costs, owner);
}

/** Returns a test for freezes of the computes that are shown; undefined stands for all. */
function concernsSome(daemon: DaemonView | undefined): (freeze: Freeze) => boolean {
  if (!daemon) return () => true;
  return ({ select }) => [...daemon.fleet.evaluatedComputes()].some(({ compute }) => mayConcern(select)(compute));
}

/** The daemon as if it knew only the computes that are asked for. */
async function withSome(
  parts: OperatorParts & { daemon: DaemonView },
  { select, q = '', ...filter }: StatusQuery,
): Promise<DaemonView> {
  const { daemon, clock } = parts;
  const matches = select && compileSelector(select);
  const some = await filterInTurns(
    await matchingComputes(parts, { q, ...filter }),
    ({ compute }) => !matches || matches(compute, Number.POSITIVE_INFINITY) === 'yes',
    clock,
  );
  return { ...daemon, fleet: { ...daemon.fleet, evaluatedComputes: () => some } };
}

function stagedDocuments(daemon: DaemonView): Pick<StatusDocument, 'staged' | 'staged_teams'> {
  const staged = daemon.staged().map(({ team: owner, hash, message }) => ({ owner, hash, message }));
  const common = staged.find(({ owner }) => owner === NO_TEAM);
  return {
    staged: common ? { hash: common.hash, message: common.message } : null,
    staged_teams: staged.filter((one) => one !== common),
  };
}

function recordsOf({ fleet }: DaemonView): KnownRecord[] {
  return [...fleet.evaluatedComputes()].map(({ compute: { projectId, computeId }, record }) => ({
    projectId,
    computeId,
    record,
  }));
}

function stoppedFights(known: readonly KnownRecord[]): StatusDocument['stopped_fights'] {
  const stopped = known.flatMap(({ projectId, computeId, record }) => {
    const fields = stoppedGroups(record);
    return fields.length === 0 ? [] : [{ project_id: projectId, compute_id: computeId, fields }];
  });
  return stopped.slice(0, MOST_SHOWN);
}

function degraded(known: readonly KnownRecord[]): StatusDocument['degraded'] {
  const failing = known.filter(({ record }) => isDegraded(worstFailures(record))).slice(0, MOST_SHOWN);
  return failing.map(({ projectId, computeId, record }) => ({
    project_id: projectId,
    compute_id: computeId,
    message: worstFailures(record)?.message ?? '',
  }));
}

function manualChangesOf({ fleet }: DaemonView): NonNullable<StatusDocument['manual_changes']> {
  const changed = [...fleet.evaluatedComputes()].flatMap(({ compute: { projectId, computeId }, plan }) =>
    plan.waiting
      .filter(({ gate }) => gate.code === 'manual_change')
      .map(({ gate: { message } }) => ({ project_id: projectId, compute_id: computeId, message })),
  );
  return changed.slice(0, MOST_SHOWN);
}

function floorsOf({ fleet }: DaemonView): NonNullable<StatusDocument['guard_floors']> {
  const floors = [...fleet.evaluatedComputes()].flatMap(({ compute: { projectId, computeId }, decision }) =>
    decision.trace
      .filter(({ code }) => code === 'guard_floor')
      .map((step) => ({ project_id: projectId, compute_id: computeId, message: describeStep(step) })),
  );
  return floors.slice(0, MOST_SHOWN);
}

async function countStatuses(
  daemon: DaemonView,
  isFrozen: ReturnType<typeof frozenTest>,
  clock: NextTurn,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const all = [...daemon.fleet.evaluatedComputes()];
  const statuses = await mapInTurns(all, (evaluated) => statusOf(daemon, evaluated, isFrozen), clock);
  for (const one of statuses) {
    counts[one] = (counts[one] ?? 0) + 1;
  }
  // The most first: the order does not depend on which compute was evaluated first.
  return Object.fromEntries(Object.entries(counts).sort(([a, many], [b, few]) => few - many || a.localeCompare(b)));
}
