import { filterInTurns, mapInTurns } from '../../common/in-turns.ts';
import { counted } from '../../common/names.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { stepJson } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { segmentJson } from '../../domain/forecast/forecast.ts';
import { countBy, groupBy } from '../../domain/grouping.ts';
import { guardsJson } from '../../domain/notifications/guards-of-compute.ts';
import { type Freeze, freezesAt } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import { withoutNotLoaded } from '../../domain/policy/team-parts.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { ascending } from '../../domain/sorted.ts';
import { sum, toHundredths } from '../../domain/sum.ts';
import { DAY_MS, HOUR_MS, isoInstant } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeStatus } from '../../ports/compute-events.ts';
import type { ComputeName } from '../../ports/documents.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import {
  COMPUTES_PER_PAGE,
  type ComputeDetailDocument,
  type FleetDocument,
  type FleetFilter,
  type FleetQuery,
  type FleetRowDocument,
  type FleetTotals,
  type WeekDocument,
} from '../../ports/status-page.ts';
import { frozenTest, statusOf } from '../evaluate-project/compute-status.ts';
import { readGuardStates } from '../guards/stored-states.ts';
import { branchCost } from '../usage/cost-detail.ts';
import {
  computeDocument,
  decisionDocument,
  freezeDocument,
  holdDocument,
  operationsOf,
  projectsOf,
  unmetHeadroom,
} from './documents.ts';
import { isId, unknownCompute } from './find-compute.ts';
import { savedByEbb } from './fleet-metrics.ts';
import { limitsOfDaemon } from './holds.ts';
import { overdueSince } from './overdue.ts';
import { type DaemonView, fail, type OperatorParts } from './parts.ts';
import type { Week } from './week-ahead.ts';

/** The page of a compute shows at most this many history entries. */
const DECISIONS_SHOWN = 30;

type Parts = OperatorParts & { daemon: DaemonView };

/** Returns a page of the computes that match a query, the most urgent first unless the query has another order. */
export async function fleetPage(parts: Parts, query: FleetQuery): Promise<FleetDocument> {
  const { daemon, clock } = parts;
  const all = [...daemon.fleet.evaluatedComputes()];
  const { nowMs, holds, freezes, withStatus, withOverdue } = await statusContext(parts, all);
  const fleet = await mapInTurns(all, withStatus, clock);
  const matched = await mapInTurns(await matching(fleet, query, clock), withOverdue, clock);
  const { perPage = COMPUTES_PER_PAGE } = query;
  const pages = Math.max(1, Math.ceil(matched.length / perPage));
  const page = Math.min(Math.max(1, Math.floor(query.page)), pages);
  const start = (page - 1) * perPage;
  const shown = inOrder(matched, query.sort).slice(start, start + perPage);
  const holdsByCompute = groupBy(holds, ({ computeId }) => computeId);
  const holdsOf = ({ compute }: EvaluatedCompute) => holdsByCompute.get(compute.computeId) ?? [];
  const subjects = shown.map((one) => subjectOf(one, { holds: holdsOf(one.evaluatedCompute), freezes }));
  const weeks = await daemon.week.of(subjects, nowMs);
  // Computes of the same kind share a week, and so its document.
  const documents = new Map([...new Set(weeks)].map((week) => [week, weekDocument(week)]));
  const documentOf = (week: Week | undefined) => (week && documents.get(week)) ?? weekDocument(undefined);
  const rowOf = ([index, one]: [number, ComputeWithStatus]) => rowDocument(one, documentOf(weeks[index]));
  return {
    at: isoInstant(nowMs),
    projects: projectsOf(daemon.fleet),
    known: fleet.length,
    matched: matched.length,
    page,
    pages,
    overdue: countAndFirst(matched.flatMap(({ overdueSinceMs }) => overdueSinceMs ?? [])),
    next_hour: withinAnHour(matched, nowMs),
    upcoming: upcomingOf(matched, nowMs),
    saved_now: savedNow(matched),
    totals: totalsOf(matched),
    groups: groupsOf(matched, query.group),
    owners: [...new Set(fleet.map(({ owner }) => owner))].toSorted(ascending),
    computes: await mapInTurns([...shown.entries()], rowOf, clock),
  };
}

export async function matchingComputes(parts: Parts, filter: FleetFilter): Promise<EvaluatedCompute[]> {
  const all = [...parts.daemon.fleet.evaluatedComputes()];
  const { withStatus } = await statusContext(parts, all);
  const matched = await matching(await mapInTurns(all, withStatus, parts.clock), filter, parts.clock);
  return matched.map(({ evaluatedCompute }) => evaluatedCompute);
}

/** Returns true if the filter may leave out computes. */
export function isNarrowed({ q = '', owner, project, policy, status, reason }: Partial<FleetFilter>): boolean {
  return q !== '' || [owner, project, policy, status, reason].some((one) => one !== undefined);
}

/** Returns the page of one compute; `not_found` if the daemon has not evaluated it. */
export async function computePage(parts: Parts, computeId: string): Promise<OperatorResult<ComputeDetailDocument>> {
  const { daemon, store } = parts;
  const found = evaluatedComputeOf(parts, computeId);
  if (!found.ok) return found;
  const evaluatedCompute = found.value;
  const ofProject = [...daemon.fleet.evaluatedComputes()].filter(
    (one) => one.compute.projectId === evaluatedCompute.compute.projectId,
  );
  const { nowMs, holds, freezes, withStatus, withOverdue } = await statusContext(parts, ofProject);
  const row = withOverdue(withStatus(evaluatedCompute));
  const holdsOfCompute = holds.filter((hold) => hold.computeId === computeId);
  const subject = subjectOf(row, { holds: holdsOfCompute, freezes });
  const [week] = await daemon.week.of([subject], nowMs);
  const { compute, decision, record } = evaluatedCompute;
  const { projectId, regionId, disabled } = compute;
  const isGuarded = policiesOfKind(daemon.policies().set.policies, 'guard').length > 0;
  const states = isGuarded ? (await readGuardStates(store)).get(computeId) : undefined;
  const entries = await store.history({ limit: DECISIONS_SHOWN, computeId });
  const cached = daemon.fleet.cachedProject(projectId);
  const { organizationId: organization, account } = cached?.project ?? {};
  const unit = { projectId, branchId: compute.branchId };
  return {
    ok: true,
    value: {
      ...rowDocument(row, weekDocument(week)),
      at: isoInstant(nowMs),
      read_at: cached ? isoInstant(cached.readAtMs) : null,
      refused: daemon.refusedProjects().filter((one) => one.project_id === projectId),
      region_id: regionId,
      disabled,
      trace: decision.trace.map(stepJson),
      ...guardsJson(evaluatedCompute, { policies: daemon.policies(), states, atMs: nowMs }),
      holds: holdsOfCompute.map((hold) => holdDocument(hold, limitsOfDaemon(daemon)(hold))),
      freezes: freezesAt(freezes, compute, nowMs).map(freezeDocument),
      freezing_policies: freezingPolicies(decision),
      operations: operationsOf([{ projectId, computeId, record }]),
      decisions: entries.map(decisionDocument),
      cost:
        organization === undefined || account === undefined
          ? null
          : await branchCost({ store, account, organization, unit, costs: daemon.costs(), nowMs }),
    },
  };
}

function freezingPolicies({ freezes }: EvaluatedCompute['decision']): ComputeDetailDocument['freezing_policies'] {
  return withoutNotLoaded(freezes).map(({ policy, untilMs, allowRaise }) => ({
    policy: policy.name,
    until: untilMs === undefined ? null : isoInstant(untilMs),
    allow_raise: allowRaise,
  }));
}

/** Returns the ids of a compute if the daemon has evaluated it. */
export function knownCompute(parts: Parts, computeId: string): OperatorResult<ComputeName> {
  const found = evaluatedComputeOf(parts, computeId);
  if (!found.ok) return found;
  return { ok: true, value: { project_id: found.value.compute.projectId, compute_id: computeId } };
}

function evaluatedComputeOf({ daemon }: Parts, computeId: string): OperatorResult<EvaluatedCompute> {
  const { fleet } = daemon;
  const evaluatedCompute = isId(computeId) ? fleet.latestEvaluation(computeId) : undefined;
  if (evaluatedCompute) return { ok: true, value: evaluatedCompute };
  const unread = fleet.projectIds().filter((projectId) => fleet.cachedProject(projectId) === undefined).length;
  const hint = unread > 0 ? `; this daemon has not read ${counted(unread, 'project')} yet` : '';
  return fail('not_found', `${unknownCompute(computeId)}${hint}`);
}

/** Returns what the status of computes depends on. `evaluated` must have all computes of a project, since the owner may depend on all of them. */
async function statusContext({ store, daemon, now }: Parts, evaluated: readonly { compute: Compute }[]) {
  const nowMs = await now();
  const [holds, freezes] = await Promise.all([store.holds(nowMs), store.freezes(nowMs)]);
  const isFrozen = frozenTest(freezes, nowMs);
  const computes = evaluated.map(({ compute }) => compute);
  const policies = daemon.policies();
  const ownerOf = computeOwners({ rules: daemon.owners(), policies, computes });
  const withStatus = (evaluatedCompute: EvaluatedCompute): ComputeWithStatus => ({
    evaluatedCompute,
    status: statusOf(daemon, evaluatedCompute, isFrozen),
    owner: ownerOf(evaluatedCompute.compute),
  });
  const withOverdue = (one: ComputeWithStatus): ComputeWithStatus => {
    const query = { policies, holds, freezes, status: one.status, nowMs, rules: daemon.rules };
    return { ...one, overdueSinceMs: overdueSince(one.evaluatedCompute, query) };
  };
  return { nowMs, holds, freezes, withStatus, withOverdue };
}

/** A saving over one second is the CU that are saved at this moment. */
function savedNow(matched: readonly ComputeWithStatus[]): FleetDocument['saved_now'] {
  const saved = matched.flatMap(({ evaluatedCompute }) => savedByEbb(evaluatedCompute, 1) ?? []);
  return {
    computes: saved.length,
    low_cu: toHundredths(sum(saved.map(({ low, high }) => Math.min(low, high)))),
    high_cu: toHundredths(sum(saved.map(({ low, high }) => Math.max(low, high)))),
  };
}

function subjectOf(
  { evaluatedCompute: { compute, record, respected } }: ComputeWithStatus,
  overrides: { holds: readonly Hold[]; freezes: readonly Freeze[] },
) {
  return { compute, ...decidingFacts(record), respected, ...overrides };
}

function rowDocument(one: ComputeWithStatus, week: WeekDocument): FleetRowDocument {
  const { evaluatedCompute, status, owner, overdueSinceMs } = one;
  return {
    ...computeDocument(evaluatedCompute, status),
    branch_name: evaluatedCompute.compute.branchName ?? null,
    owner,
    overdue_since: overdueSinceMs === undefined ? null : isoInstant(overdueSinceMs),
    week,
  };
}

function weekDocument(week: Week = { state: 'not_yet' }): WeekDocument {
  if (week.state !== 'known') return week;
  return { state: 'known', segments: week.segments.map(segmentJson) };
}

/* Filters, orders and totals of the fleet's pages. */

/** The most words of a search. Further words are ignored, since they would only cost time. */
const MAX_WORDS = 10;

export interface ComputeWithStatus {
  evaluatedCompute: EvaluatedCompute;
  status: ComputeStatus;
  owner: string;
  /** Since when a change has been overdue, milliseconds since the epoch; see `overdueSince`. */
  overdueSinceMs?: number | undefined;
}

/** Returns the computes that match every given field; their text must contain every word of `q`. */
export function matching(
  computes: readonly ComputeWithStatus[],
  { q, owner, project, policy, status, reason }: FleetFilter,
  clock: Pick<Clock, 'nextTurn'>,
): Promise<ComputeWithStatus[]> {
  const words = [...new Set(q.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, MAX_WORDS);
  const hasAllWords = (text: string) => words.every((word) => text.includes(word));
  const isIn = (wanted: string | undefined, values: readonly (string | undefined)[]) =>
    wanted === undefined || values.includes(wanted);
  const matches = (one: ComputeWithStatus): boolean => {
    const { compute, plan } = one.evaluatedCompute;
    return (
      isIn(owner, [one.owner]) &&
      isIn(project, [compute.projectId, compute.projectName]) &&
      (policy === undefined || policyNames(one).includes(policy)) &&
      isIn(status, [one.status]) &&
      isIn(reason, gatesOf(plan)) &&
      (words.length === 0 || hasAllWords(textOf(one)))
    );
  };
  return filterInTurns(computes, matches, clock);
}

function policyNames({ evaluatedCompute: { decision } }: ComputeWithStatus): string[] {
  return Object.values(decision.deciders).flatMap((step) => (step.policy ?? step.proposal?.policy)?.name ?? []);
}

/** Returns the number of computes that may change within an hour, and the first such instant. */
export function withinAnHour(computes: readonly ComputeWithStatus[], nowMs: number): FleetDocument['next_hour'] {
  const soon = computes.flatMap(({ evaluatedCompute: { nextChangeMs } }) =>
    nextChangeMs !== undefined && nextChangeMs > nowMs && nextChangeMs <= nowMs + HOUR_MS ? [nextChangeMs] : [],
  );
  return countAndFirst(soon);
}

function countAndFirst(instants: readonly number[]): FleetDocument['next_hour'] {
  return { computes: instants.length, first: instants.length === 0 ? null : isoInstant(earliest(instants)) };
}

/** Returns the earliest instant. Math.min is not used: a fleet may have more computes than a call may have arguments. */
function earliest(instants: readonly number[]): number {
  return instants.reduce((one, other) => Math.min(one, other));
}

function latest(instants: readonly number[]): number {
  return instants.reduce((one, other) => Math.max(one, other));
}

/** Returns the next changes of computes within a day, counted by hour and owner. */
export function upcomingOf(computes: readonly ComputeWithStatus[], nowMs: number): FleetDocument['upcoming'] {
  const next = computes.flatMap(({ owner, evaluatedCompute: { nextChangeMs } }) =>
    nextChangeMs !== undefined && nextChangeMs > nowMs && nextChangeMs <= nowMs + DAY_MS
      ? [{ owner, nextChangeMs }]
      : [],
  );
  const hours = groupBy(next, ({ nextChangeMs }) => Math.floor(nextChangeMs / HOUR_MS));
  return [...hours]
    .sort(([a], [b]) => a - b)
    .map(([, changes]) => ({
      first: isoInstant(earliest(changes.map(({ nextChangeMs }) => nextChangeMs))),
      last: isoInstant(latest(changes.map(({ nextChangeMs }) => nextChangeMs))),
      computes: changes.length,
      owners: [...countBy(changes, ({ owner }) => owner)]
        .map(([owner, count]) => ({ owner, computes: count }))
        .sort((a, b) => b.computes - a.computes || ascending(a.owner, b.owner)),
    }));
}

function totalsOf(computes: readonly ComputeWithStatus[]): FleetTotals {
  const active = computes.filter(({ evaluatedCompute }) => evaluatedCompute.compute.state === 'active');
  const sum = (end: 'minCu' | 'maxCu') =>
    active.reduce((total, { evaluatedCompute }) => total + evaluatedCompute.compute[end], 0);
  return { computes: computes.length, active: active.length, min_cu: sum('minCu'), max_cu: sum('maxCu') };
}

/** Returns totals by owner or project, the largest sum of maximum sizes first. */
export function groupsOf(computes: readonly ComputeWithStatus[], group: FleetQuery['group']): FleetDocument['groups'] {
  if (group === undefined) return [];
  const nameOf = (one: ComputeWithStatus) => (group === 'owner' ? one.owner : one.evaluatedCompute.compute.projectName);
  const groups = [...groupBy(computes, nameOf)].map(([name, members]) => ({ name, ...totalsOf(members) }));
  return groups.toSorted((a, b) => b.max_cu - a.max_cu || ascending(a.name, b.name));
}

/** Returns the text in which the words of a search are looked up. */
function textOf(one: ComputeWithStatus): string {
  const { evaluatedCompute, status } = one;
  const { compute, plan } = evaluatedCompute;
  const { projectId, projectName, computeId, branchId, branchName = '', state, type } = compute;
  const unmet = unmetHeadroom(evaluatedCompute) === undefined ? [] : ['headroom_unmet'];
  const names = [computeId, projectId, projectName, branchId, branchName, state, type, status];
  return [...names, ...gatesOf(plan), ...unmet, ...policyNames(one)].join(' ').toLowerCase();
}

/** Sorts by urgency or by a column, and then by project and id. */
export function inOrder(
  computes: readonly ComputeWithStatus[],
  sort: FleetQuery['sort'] = 'attention',
): ComputeWithStatus[] {
  const keyed = computes.map((one) => {
    const { compute, nextChangeMs = Number.POSITIVE_INFINITY } = one.evaluatedCompute;
    const place = `${compute.projectName} ${compute.computeId}`;
    const keys = {
      attention: [rankOf(one), nextChangeMs],
      compute: [compute.computeId],
      project: [place],
      size: [-compute.maxCu, -compute.minCu],
      next: [nextChangeMs],
    };
    return { one, keys: [...keys[sort], place] };
  });
  type Keyed = (typeof keyed)[number];
  const compareKeys = (a: Keyed, b: Keyed): number => {
    for (const [index, key] of a.keys.entries()) {
      const order = ascending(key, b.keys[index] ?? key);
      if (order !== 0) return order;
    }
    return 0;
  };
  return keyed.toSorted(compareKeys).map(({ one }) => one);
}

/** Returns the rank by urgency. A compute with a lower rank comes first. */
function rankOf({ evaluatedCompute, status }: ComputeWithStatus): number {
  const { plan } = evaluatedCompute;
  if (unmetHeadroom(evaluatedCompute) !== undefined) return -1;
  if (status === 'degraded') return 0;
  if (gatesOf(plan).includes('fight_stopped')) return 1;
  if (plan.verdict === 'act') return 2;
  if (plan.verdict === 'wait') return 3;
  return { frozen: 4, not_loaded: 4, held: 4, orphaned: 5, enforced: 6, observed: 6, unmatched: 7 }[status];
}
