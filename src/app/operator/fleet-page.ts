import { mapInTurns } from '../../common/in-turns.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { stepJson } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import { ascending } from '../../domain/sorted.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { ComputeName } from '../../ports/documents.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import {
  COMPUTES_PER_PAGE,
  type ComputeDetailDocument,
  type FleetDocument,
  type FleetQuery,
  type FleetRowDocument,
  type WeekDocument,
} from '../../ports/status-page.ts';
import { frozenBy, statusOf } from '../evaluate/compute-status.ts';
import { computeDocument, decisionDocument, holdDocument, operationsOf } from './documents.ts';
import { isId, unknownCompute } from './find-compute.ts';
import { type ComputeWithStatus, groupsOf, inOrder, matching, totalsOf, withinAnHour } from './fleet-selection.ts';
import { limitsOfDaemon } from './hold-limits.ts';
import { type DaemonParts, fail, type OperatorParts } from './parts.ts';
import type { Week } from './week-ahead.ts';

/** Entries of the history that the page of a compute shows. */
const DECISIONS_SHOWN = 30;

type Parts = OperatorParts & { daemon: DaemonParts };

/** A page of the fleet: of what was looked for, what needs attention first unless another order is asked for. */
export async function fleetPage(parts: Parts, query: FleetQuery): Promise<FleetDocument> {
  const { daemon } = parts;
  const all = [...daemon.fleet.evaluatedComputes()];
  const { nowMs, holds, evaluate } = await situationOf(parts, all);
  const known = await mapInTurns(all, evaluate);
  const matched = await matching(known, query);
  const pages = Math.max(1, Math.ceil(matched.length / COMPUTES_PER_PAGE));
  const shown = Math.min(Math.max(1, Math.floor(query.page)), pages);
  const start = (shown - 1) * COMPUTES_PER_PAGE;
  const some = inOrder(matched, query.sort).slice(start, start + COMPUTES_PER_PAGE);
  const holdsOf = byCompute(holds);
  const weeks = await daemon.week.of(
    some.map((one) => subjectOf(one, holdsOf)),
    nowMs,
  );
  const documents = new Map([...new Set(weeks)].map((week) => [week, weekDocument(week)]));
  const documentOf = (week: Week | undefined) => (week && documents.get(week)) ?? weekDocument(undefined);
  return {
    at: isoInstant(nowMs),
    known: known.length,
    matched: matched.length,
    page: shown,
    pages,
    next_hour: withinAnHour(known, nowMs),
    totals: totalsOf(matched),
    groups: groupsOf(matched, query.group),
    owners: [...new Set(known.map(({ owner }) => owner))].toSorted(ascending),
    computes: await mapInTurns([...some.entries()], ([index, one]) => rowDocument(one, documentOf(weeks[index]))),
  };
}

/** Everything about one compute that a daemon knows. */
export async function computePage(parts: Parts, computeId: string): Promise<OperatorResult<ComputeDetailDocument>> {
  const { daemon, store } = parts;
  const found = evaluatedComputeOf(parts, computeId);
  if (!found.ok) return found;
  const evaluatedCompute = found.value;
  const ofProject = [...daemon.fleet.evaluatedComputes()].filter(
    (one) => one.compute.projectId === evaluatedCompute.compute.projectId,
  );
  const { nowMs, holds, evaluate } = await situationOf(parts, ofProject);
  const withStatus = evaluate(evaluatedCompute);
  const subject = subjectOf(withStatus, byCompute(holds));
  const [week] = await daemon.week.of([subject], nowMs);
  const { compute, decision, record } = evaluatedCompute;
  const { projectId, regionId, disabled } = compute;
  const entries = await store.history({ limit: DECISIONS_SHOWN, computeId });
  return {
    ok: true,
    value: {
      ...rowDocument(withStatus, weekDocument(week)),
      at: isoInstant(nowMs),
      region_id: regionId,
      disabled,
      trace: decision.trace.map(stepJson),
      holds: subject.holds.map((hold) => holdDocument(hold, limitsOfDaemon(daemon)(hold))),
      operations: operationsOf([{ projectId, computeId, record }]),
      decisions: entries.map(decisionDocument),
    },
  };
}

/** The compute, if the daemon has an evaluation about it. */
export function knownCompute(parts: Parts, computeId: string): OperatorResult<ComputeName> {
  const found = evaluatedComputeOf(parts, computeId);
  if (!found.ok) return found;
  return { ok: true, value: { project_id: found.value.compute.projectId, compute_id: computeId } };
}

function evaluatedComputeOf({ daemon }: Parts, computeId: string): OperatorResult<EvaluatedCompute> {
  const evaluatedCompute = isId(computeId) ? daemon.fleet.known(computeId)?.evaluatedCompute : undefined;
  return evaluatedCompute ? { ok: true, value: evaluatedCompute } : fail('not_found', unknownCompute(computeId));
}

/** `known` has whole projects: who owns a compute depends on no other. */
async function situationOf({ store, daemon, now }: Parts, known: readonly { compute: Compute }[]) {
  const nowMs = await now();
  const [holds, freezes] = await Promise.all([store.holds(nowMs), store.freezes(nowMs)]);
  const isFrozen = frozenBy(freezes, nowMs);
  const computes = known.map(({ compute }) => compute);
  const ownerOf = computeOwners({ rules: daemon.owners(), policies: daemon.policies(), computes });
  const evaluate = (evaluatedCompute: EvaluatedCompute): ComputeWithStatus => ({
    evaluatedCompute,
    status: statusOf(daemon, evaluatedCompute, isFrozen),
    owner: ownerOf(evaluatedCompute.compute),
  });
  return { nowMs, holds, evaluate };
}

function subjectOf(
  { evaluatedCompute: { compute, record } }: ComputeWithStatus,
  holdsOf: ReadonlyMap<string, readonly Hold[]>,
) {
  const own = holdsOf.get(compute.computeId) ?? [];
  return { compute, baseline: record.baseline, trials: record.trials, holds: own };
}

function byCompute(holds: readonly Hold[]): Map<string, Hold[]> {
  const found = new Map<string, Hold[]>();
  for (const hold of holds) {
    const own = found.get(hold.computeId);
    if (own) own.push(hold);
    else found.set(hold.computeId, [hold]);
  }
  return found;
}

function rowDocument({ evaluatedCompute, status, owner }: ComputeWithStatus, week: WeekDocument): FleetRowDocument {
  return {
    ...computeDocument(evaluatedCompute, status),
    branch_name: evaluatedCompute.compute.branchName ?? null,
    owner,
    week,
  };
}

function weekDocument(week: Week = { state: 'not_yet' }): WeekDocument {
  if (week.state !== 'known') return week;
  return {
    state: 'known',
    segments: week.segments.map(({ fromMs, toMs, minCu, maxCu, suspendTimeoutSeconds, policies }) => ({
      from: isoInstant(fromMs),
      to: isoInstant(toMs),
      ...{ min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds },
      policies: [...policies],
    })),
  };
}
