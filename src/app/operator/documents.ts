/** Converts domain values to documents for people and programs. */

import { counted } from '../../common/names.ts';
import { promisesOf } from '../../domain/compute/account-facts.ts';
import { describeStep } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { fieldsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { countBy } from '../../domain/grouping.ts';
import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { gatesOf, reasonsOf } from '../../domain/plan/plan.ts';
import { describeLevel } from '../../domain/rate-budget/grant.ts';
import type { HistoryEntry } from '../../domain/records/history.ts';
import { ascending } from '../../domain/sorted.ts';
import { isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeStatus } from '../../ports/compute-events.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import {
  type ComputeDocument,
  type DecisionDocument,
  type FreezeDocument,
  type HerdDocument,
  type HoldDocument,
  MAX_LISTED,
  type OperationDocument,
  type RefusedProjectDocument,
  type SettingsDocument,
  type StatusDocument,
} from '../../ports/documents.ts';
import { MAX_PER_PAGE, type Page, type PageQuery } from '../../ports/operator.ts';
import type { FleetDocument } from '../../ports/status-page.ts';
import type { LocatedRecord } from '../../ports/store.ts';
import { HERD_NEAR_MS, type HerdDeps, herdsBetween } from '../fleet/at-boundary.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CurrentRules } from '../rules.ts';
import type { Outages, Refusal } from '../telemetry/outages.ts';

export function settingsDocument(settings: {
  minCu?: number;
  maxCu?: number;
  suspendTimeoutSeconds?: number | null;
}): SettingsDocument {
  const { minCu = null, maxCu = null, suspendTimeoutSeconds = null } = settings;
  return { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds };
}

export function computeDocument({ compute, decision, plan, record, ...rest }: EvaluatedCompute, status: ComputeStatus) {
  const { size, suspendTimeoutSeconds } = decision.desired;
  const document: ComputeDocument = {
    project_id: compute.projectId,
    project_name: compute.projectName,
    compute_id: compute.computeId,
    branch_id: compute.branchId,
    type: compute.type,
    status,
    current: { ...settingsDocument(compute), state: compute.state },
    desired: settingsDocument({ ...size, suspendTimeoutSeconds }),
    baseline: settingsDocument(record.baseline),
    verdict: plan.verdict,
    reasons: reasonsOf(plan),
    until: instantOrNull(plan.untilMs),
    next_boundary: instantOrNull(rest.nextBoundaryMs),
    next_change: instantOrNull(rest.nextChangeMs),
  };
  return document;
}

/** Returns the document of a hold. `limited` says how hard limits change the hold. */
export function holdDocument(hold: Hold, limited: string | null): HoldDocument {
  const { size, suspendTimeoutSeconds = null, freeze = false } = hold;
  return {
    id: hold.id,
    project_id: hold.projectId,
    compute_id: hold.computeId,
    ...overrideDocument(hold),
    size: size ? { min_cu: size.minCu, max_cu: size.maxCu } : null,
    suspend_timeout_seconds: suspendTimeoutSeconds,
    freeze,
    limited,
  };
}

export function freezeDocument(freeze: Freeze): FreezeDocument {
  return {
    id: freeze.id,
    ...overrideDocument(freeze),
    select: freeze.select,
    allow_raise: freeze.allowRaise,
    ...(freeze.team !== undefined && { team: freeze.team }),
  };
}

export function decisionDocument(entry: HistoryEntry): DecisionDocument {
  const { policy = null, revision = null, who = null, owner = null, id = null, requestId = null, from, to } = entry;
  return {
    at: isoInstant(entry.atMs),
    project_id: entry.projectId,
    compute_id: entry.computeId,
    kind: entry.kind,
    policy,
    set_hash: entry.setHash,
    revision,
    from: from ? fieldsJson(from) : null,
    to: to ? fieldsJson(to) : null,
    reasons: entry.reasons,
    who,
    verified: entry.verified ?? false,
    request_id: requestId,
    owner,
    id,
  };
}

/** Returns the open operations of records, oldest first. */
export function operationsOf(records: readonly LocatedRecord[]): OperationDocument[] {
  return records
    .flatMap(({ record, ...place }) => record.openOperations.map((operation) => ({ ...place, operation })))
    .sort((a, b) => a.operation.startedAtMs - b.operation.startedAtMs)
    .map(({ projectId, computeId, operation: { operationId, action, startedAtMs, policy = null } }) => ({
      project_id: projectId,
      compute_id: computeId,
      operation_id: operationId,
      action,
      policy,
      started_at: isoInstant(startedAtMs),
    }));
}

function overrideDocument({ owner, reason, createdAtMs, expiresAtMs }: Hold | Freeze) {
  return { owner, reason, created_at: isoInstant(createdAtMs), expires_at: instantOrNull(expiresAtMs) };
}

function instantOrNull(ms: number | undefined): string | null {
  return ms === undefined || !Number.isFinite(ms) ? null : isoInstant(ms);
}

/** Returns one page of a list, in the order of the keys. The list may change between pages, since the cursor is the key of the last item. */
export function pageOf<T>(items: readonly T[], keyOf: (item: T) => string, { after, limit }: PageQuery): Page<T> {
  const sorted = items.map((item) => ({ item, key: keyOf(item) })).toSorted((a, b) => ascending(a.key, b.key));
  const rest = after === undefined ? sorted : sorted.filter(({ key }) => key > after);
  const shown = rest.slice(0, boundedLimit(limit));
  return { items: shown.map(({ item }) => item), next: (rest.length > shown.length && shown.at(-1)?.key) || null };
}

/** Limits the size of a page to 1 to {@link MAX_PER_PAGE}. */
export function boundedLimit(limit: number): number {
  return Math.min(Math.max(1, Math.floor(limit)), MAX_PER_PAGE);
}

/** Returns why a compute lacks connections, and the remedy; undefined if it has enough. */
export function unmetHeadroom({ decision }: Pick<EvaluatedCompute, 'decision'>): string | undefined {
  const step = decision.trace.find(({ code }) => code === 'headroom_unmet');
  return step && describeStep(step);
}

export interface FleetDeps {
  fleet: Pick<Fleet, 'evaluatedComputes'>;
}

/**
 * Counts the projects that the accounts list, and those that this daemon has read. A project with computes counts as read only once one of
 * its computes is evaluated: before that no page shows its computes.
 */
export function projectsOf(
  fleet: Pick<Fleet, 'projectIds' | 'cachedProject' | 'latestEvaluation'>,
): FleetDocument['projects'] {
  const isShown = (projectId: string) => {
    const computes = fleet.cachedProject(projectId)?.computes;
    return computes?.length === 0 || computes?.some(({ computeId }) => fleet.latestEvaluation(computeId)) === true;
  };
  const ids = fleet.projectIds();
  return { listed: ids.length, read: ids.filter(isShown).length };
}

/** Returns the computes that need more connections than even the largest allowed size gives. */
export function unmetOf({ fleet }: FleetDeps): NonNullable<StatusDocument['unmet_headroom']> {
  const unmet = [...fleet.evaluatedComputes()].flatMap((evaluatedCompute) => {
    const { projectId, computeId } = evaluatedCompute.compute;
    const message = unmetHeadroom(evaluatedCompute);
    return message === undefined ? [] : [{ project_id: projectId, compute_id: computeId, message }];
  });
  return unmet.slice(0, MAX_LISTED);
}

/** Counts the computes with waiting changes by gate, the most frequent gate first. */
export function countWaiting({ fleet }: FleetDeps): StatusDocument['waiting'] {
  const gates = [...fleet.evaluatedComputes()].flatMap(({ plan }) => [...new Set(gatesOf(plan))]);
  const counts = countBy(gates, (gate) => gate);
  return [...counts].map(([reason, computes]) => ({ reason, computes })).toSorted((a, b) => b.computes - a.computes);
}

/** How far ahead herds are reported, in milliseconds: a command may need about as long to read thousands of projects. */
const HERDS_AHEAD_MS = 30 * MINUTE_MS;

/** Returns the herds (at-boundary.ts) from {@link HERD_NEAR_MS} ago to {@link HERDS_AHEAD_MS} ahead, the earliest first. */
export function herdDocuments(deps: HerdDeps, nowMs: number): HerdDocument[] {
  const herds = herdsBetween(deps, nowMs - HERD_NEAR_MS, nowMs + HERDS_AHEAD_MS).toSorted(
    (a, b) => a.firstMs - b.firstMs,
  );
  return herds.slice(0, MAX_LISTED).map(({ account, firstMs, lastMs, computes }) => ({
    account,
    first: isoInstant(firstMs),
    last: isoInstant(lastMs),
    computes,
  }));
}

/** Returns the accounts whose requests wait for the rate limit, and those whose limit is not used in full after an answer 429. */
export function apiLimitsDocument({
  api,
  clock,
}: {
  api: Pick<ControlApi, 'accountStatus'>;
  clock: Pick<Clock, 'now'>;
}): NonNullable<StatusDocument['api_limits']> {
  const statuses = api.accountStatus();
  const waits = statuses.flatMap(({ account, waiting }) => {
    if (!waiting) return [];
    const { writes, reads, perMinute, waitedMs, inMs } = waiting;
    const since = isoInstant(clock.now() - waitedMs);
    const normal_by = isoInstant(clock.now() + inMs);
    const requests = [writes > 0 ? counted(writes, 'change') : [], reads > 0 ? counted(reads, 'reading') : []].flat();
    const verb = writes + reads === 1 ? 'waits' : 'wait';
    const message = `${requests.join(' and ')} ${verb} for the limit of ${perMinute} requests a minute, until about ${normal_by}`;
    return [{ account, level: 0, since, normal_by, message }];
  });
  const limited = statuses.flatMap(({ account, limit }) => {
    if (!limit) return [];
    const { level, agoMs, normalInMs } = limit;
    const since = isoInstant(clock.now() - agoMs);
    const normal_by = isoInstant(clock.now() + normalInMs);
    const message = `${describeLevel(level)}, after an answer 429 at ${since}; the whole limit is used from ${normal_by} on unless another comes`;
    return [{ account, level, since, normal_by, message }];
  });
  return [...waits, ...limited];
}

/**
 * Returns the projects that the control API refuses to read or to change, the longest refused first. The refusal of reads is over after a later
 * reading, perhaps by another daemon. The refusal of changes is over once no record of the project has a failed change.
 */
export function refusedProjects({
  fleet,
  outages,
}: {
  fleet: Pick<Fleet, 'listed' | 'cachedProject' | 'latestEvaluation'>;
  outages: Pick<Outages, 'refused'>;
}): RefusedProjectDocument[] {
  const isOver = ({ projectId, kind, lastMs }: Refusal) => {
    const { readAtMs = 0, computes = [] } = fleet.cachedProject(projectId) ?? {};
    if (kind === 'read') return readAtMs > lastMs;
    const evaluated = computes.flatMap(({ computeId }) => fleet.latestEvaluation(computeId) ?? []);
    return kind === 'write' && evaluated.length > 0 && evaluated.every(({ record }) => record.failures === undefined);
  };
  const current = outages.refused().filter((one) => fleet.listed(one.projectId) && !isOver(one));
  return current
    .toSorted((a, b) => a.sinceMs - b.sinceMs)
    .map(({ projectId, kind, message, sinceMs }) => ({
      project_id: projectId,
      project_name: fleet.listed(projectId)?.name ?? projectId,
      request: kind,
      message: `${REFUSED[kind]}: ${message}`,
      since: isoInstant(sinceMs),
    }));
}

const REFUSED: Readonly<Record<Refusal['kind'], string>> = {
  read: "can't be read, so nothing is changed",
  branches: "its branches can't be read",
  operations: "its operations can't be read",
  write: "can't be changed",
};

/** Returns the verified facts of each account on which ebb's promises rely. */
export function factsDocument({ current }: CurrentRules): NonNullable<StatusDocument['facts']> {
  return [...current.verified].flatMap(([account, verified]) =>
    promisesOf(verified).map((one) => ({ account, ...one })),
  );
}
