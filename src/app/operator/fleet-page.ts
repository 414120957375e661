import { stepJson } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import { ascending } from '../../domain/sorted.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { ComputeName, ComputeStatus } from '../../ports/documents.ts';
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
import { type DaemonParts, fail, type OperatorParts } from './parts.ts';
import { unmetHeadroom } from './unmet-headroom.ts';
import type { Week } from './week-ahead.ts';

/** Words that are looked for; more would only cost. */
const MOST_WORDS = 10;

/** Entries of the history that the page of a compute shows. */
const DECISIONS_SHOWN = 30;

type Parts = OperatorParts & { daemon: DaemonParts };

/** A conclusion, and what ebb does with its compute. */
interface ComputeWithStatus {
  evaluatedCompute: EvaluatedCompute;
  status: ComputeStatus;
}

/** A page of the fleet: of what was looked for, what needs attention first. */
export async function fleetPage(parts: Parts, { q, page }: FleetQuery): Promise<FleetDocument> {
  const { daemon } = parts;
  const { nowMs, holds, evaluate } = await situationOf(parts);
  const known = [...daemon.fleet.evaluatedComputes()].map(evaluate);
  const words = [...new Set(q.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, MOST_WORDS);
  const matched = words.length === 0 ? known : known.filter((one) => holdsAll(textOf(one), words));
  const pages = Math.max(1, Math.ceil(matched.length / COMPUTES_PER_PAGE));
  const shown = Math.min(Math.max(1, Math.floor(page)), pages);
  const start = (shown - 1) * COMPUTES_PER_PAGE;
  const some = byAttention(matched).slice(start, start + COMPUTES_PER_PAGE);
  const weeks = await daemon.week.of(
    some.map((one) => subjectOf(one, holds)),
    nowMs,
  );
  return {
    at: isoInstant(nowMs),
    known: known.length,
    matched: matched.length,
    page: shown,
    pages,
    computes: some.map((one, index) => rowDocument(one, weeks[index])),
  };
}

/** Everything about one compute that a daemon knows. */
export async function computePage(parts: Parts, computeId: string): Promise<OperatorResult<ComputeDetailDocument>> {
  const { daemon, store } = parts;
  const found = evaluatedComputeOf(parts, computeId);
  if (!found.ok) return found;
  const evaluatedCompute = found.value;
  const { nowMs, holds, evaluate } = await situationOf(parts);
  const withStatus = evaluate(evaluatedCompute);
  const subject = subjectOf(withStatus, holds);
  const [week] = await daemon.week.of([subject], nowMs);
  const { compute, decision, record } = evaluatedCompute;
  const { projectId, regionId, disabled } = compute;
  const entries = await store.history({ limit: DECISIONS_SHOWN, computeId });
  return {
    ok: true,
    value: {
      ...rowDocument(withStatus, week),
      at: isoInstant(nowMs),
      region_id: regionId,
      disabled,
      trace: decision.trace.map(stepJson),
      holds: subject.holds.map((hold) => holdDocument(hold, daemon)),
      operations: operationsOf([{ projectId, computeId, record }]),
      decisions: entries.map(decisionDocument),
    },
  };
}

/** The compute, if the daemon has a conclusion about it. */
export function knownCompute(parts: Parts, computeId: string): OperatorResult<ComputeName> {
  const found = evaluatedComputeOf(parts, computeId);
  if (!found.ok) return found;
  return { ok: true, value: { project_id: found.value.compute.projectId, compute_id: computeId } };
}

function evaluatedComputeOf({ daemon }: Parts, computeId: string): OperatorResult<EvaluatedCompute> {
  const evaluatedCompute = isId(computeId) ? daemon.fleet.known(computeId)?.evaluatedCompute : undefined;
  return evaluatedCompute ? { ok: true, value: evaluatedCompute } : fail('not_found', unknownCompute(computeId));
}

async function situationOf({ store, daemon, now }: Parts) {
  const nowMs = await now();
  const [holds, freezes] = await Promise.all([store.holds(nowMs), store.freezes(nowMs)]);
  const isFrozen = frozenBy(freezes, nowMs);
  const evaluate = (evaluatedCompute: EvaluatedCompute): ComputeWithStatus => ({
    evaluatedCompute,
    status: statusOf(daemon, evaluatedCompute, isFrozen),
  });
  return { nowMs, holds, evaluate };
}

function subjectOf({ evaluatedCompute: { compute, record } }: ComputeWithStatus, holds: readonly Hold[]) {
  const own = holds.filter(({ computeId }) => computeId === compute.computeId);
  return { compute, baseline: record.baseline, trials: record.trials, holds: own };
}

function holdsAll(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(word));
}

/** What is looked through for the words of a search. */
function textOf({ evaluatedCompute, status }: ComputeWithStatus): string {
  const { compute, decision, plan } = evaluatedCompute;
  const { projectId, projectName, computeId, branchId, branchName = '', state, type } = compute;
  const policies = Object.values(decision.deciders).map((step) => (step.policy ?? step.proposal?.policy)?.name ?? '');
  const unmet = unmetHeadroom(evaluatedCompute) === undefined ? [] : ['headroom_unmet'];
  const all = [
    computeId,
    projectId,
    projectName,
    branchId,
    branchName,
    state,
    type,
    status,
    ...gatesOf(plan),
    ...unmet,
  ];
  return [...all, ...policies].join(' ').toLowerCase();
}

function byAttention(withStatus: readonly ComputeWithStatus[]): ComputeWithStatus[] {
  const keyed = withStatus.map((one) => {
    const { compute, nextBoundaryMs = Number.POSITIVE_INFINITY } = one.evaluatedCompute;
    return { one, rank: rankOf(one), nextBoundaryMs, place: `${compute.projectName} ${compute.computeId}` };
  });
  const sorted = keyed.toSorted(
    (a, b) => a.rank - b.rank || ascending(a.nextBoundaryMs, b.nextBoundaryMs) || ascending(a.place, b.place),
  );
  return sorted.map(({ one }) => one);
}

/** What lacks connections, then what is broken, then what changes now, then what waits, then what people have set, then the rest. */
function rankOf({ evaluatedCompute, status }: ComputeWithStatus): number {
  const { plan } = evaluatedCompute;
  if (unmetHeadroom(evaluatedCompute) !== undefined) return -1;
  if (status === 'degraded') return 0;
  if (gatesOf(plan).includes('fight_stopped')) return 1;
  if (plan.verdict === 'act') return 2;
  if (plan.verdict === 'wait') return 3;
  return { frozen: 4, held: 4, orphaned: 5, enforced: 6, observed: 6, unmatched: 7 }[status];
}

function rowDocument({ evaluatedCompute, status }: ComputeWithStatus, week: Week | undefined): FleetRowDocument {
  return {
    ...computeDocument(evaluatedCompute, status),
    branch_name: evaluatedCompute.compute.branchName ?? null,
    week: weekDocument(week),
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
