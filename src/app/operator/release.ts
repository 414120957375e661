import { type Hold, LOST_HOLD } from '../../domain/overrides/holds.ts';
import { releaseRecord } from '../../domain/records/fights.ts';
import { withoutFloors } from '../../domain/records/lowerings.ts';
import type { InFlightDocument, ReleaseDocument } from '../../ports/documents.ts';
import type { OperatorResult, ReleaseRequest } from '../../ports/operator.ts';
import { addRelease, readBudgets } from '../usage/budget-store.ts';
import { changeRecords, projectBusy } from './change-records.ts';
import { ownerProblem, unconfirmed } from './check-request.ts';
import { budgetNamed, type ComputePlace, findCompute } from './find-compute.ts';
import { inFlight } from './in-flight.ts';
import { allRecords, auditOf, fail, type OperatorParts } from './parts.ts';

/** Ends a hold, the steps of a budget, the floors of a compute's guards, or a compute's holds, stopped fights and respected manual changes. */
export async function release(parts: OperatorParts, request: ReleaseRequest): Promise<OperatorResult<ReleaseDocument>> {
  const { target, owner } = request;
  const problem = ownerProblem(owner);
  if (problem !== undefined) return fail('invalid', problem);
  const budget = budgetNamed(target);
  if (budget !== undefined && request.guard) return fail('invalid', GUARD_OF_COMPUTE);
  if (budget !== undefined) return releaseBudget(parts, budget, request);
  const holds = await parts.store.holds(await parts.now());
  const hold = holds.find(({ id }) => id === target);
  if (hold && request.guard) return fail('invalid', GUARD_OF_COMPUTE);
  if (hold) {
    if (request.preview) return { ok: true, value: { holds: [hold.id], computes: [], budgets: [], count: 1 } };
    const refused = unconfirmed(request, 1);
    if (refused) return refused;
    await endHolds(parts, [hold], owner);
    const in_flight = await inFlightOf(parts, hold);
    return { ok: true, value: { holds: [hold.id], computes: [], budgets: [], in_flight } };
  }
  const found = await findCompute(parts, target);
  if (!found.ok) return /^h-/.test(target) ? fail('not_found', noHold(parts, target)) : found;
  return releaseCompute(parts, found.value, request, holds);
}

/** Stores a request to end the steps of a budget. The leader ends them, since only the leader decides steps. */
async function releaseBudget(
  parts: OperatorParts,
  policy: string,
  { owner, ...request }: ReleaseRequest,
): Promise<OperatorResult<ReleaseDocument>> {
  const { store } = parts;
  const nowMs = await parts.now();
  const states = ((await readBudgets(store)) ?? []).filter((state) => state.policy === policy);
  if (states.length === 0) return fail('not_found', `no budget ${policy.slice(0, 80)} is known: ebb status`);
  const isLimiting = states.some(({ spans }) => spans.some(({ untilMs }) => untilMs > nowMs));
  const count = isLimiting ? await limitedBy(parts, policy) : 0;
  const value = { holds: [], computes: [], budgets: isLimiting ? [policy] : [], count };
  if (request.preview) return { ok: true, value };
  const refused = unconfirmed(request, count);
  if (refused) return refused;
  if (isLimiting) {
    const message = `released: the steps of budget ${policy} that limit now end for this month`;
    // The audit entry comes first, so that limits never end without an entry.
    await store.appendHistory([await auditOf(parts, { kind: 'hold', code: 'released', message, owner, atMs: nowMs })]);
    await addRelease(store, { policy, who: owner, atMs: nowMs });
  }
  return { ok: true, value };
}

/** Counts the computes whose values a budget sets. */
async function limitedBy({ daemon, store }: OperatorParts, policy: string): Promise<number> {
  const setters = daemon
    ? [...daemon.fleet.evaluatedComputes()].map(({ decision }) => decision)
    : (await allRecords(store)).map(({ record }) => record);
  return setters.filter(({ setBy = {} }) => Object.values(setBy).includes(policy)).length;
}

async function releaseCompute(
  parts: OperatorParts,
  place: ComputePlace,
  { owner, guard = false, ...request }: ReleaseRequest,
  holds: readonly Hold[],
): Promise<OperatorResult<ReleaseDocument>> {
  const { projectId, computeId } = place;
  const releaseOf = guard ? withoutFloors : releaseRecord;
  const ended = guard ? [] : holds.filter((hold) => hold.computeId === computeId);
  const stored = (await parts.store.records(projectId)).get(computeId);
  const changesRecord = stored !== undefined && releaseOf(stored) !== stored;
  const count = changesRecord || ended.length > 0 ? 1 : 0;
  if (request.preview) {
    const computes = changesRecord ? [{ project_id: projectId, compute_id: computeId }] : [];
    return { ok: true, value: { holds: ended.map(({ id }) => id), computes, budgets: [], count } };
  }
  const refused = unconfirmed(request, count);
  if (refused) return refused;
  const message = guard
    ? 'released: what guards have taken back may be lowered again'
    : 'released: stopped fights and respected manual changes no longer count';
  const command = { kind: 'hold', code: 'released', message, owner, atMs: await parts.now() } as const;
  const changed = await changeRecords(parts, projectId, command, (id, record) =>
    id === computeId ? releaseOf(record) : record,
  );
  if (!changed.ok) return fail('busy', projectBusy(projectId));
  if (changed.changed.length > 0) await parts.requestReconciles([projectId]);
  await endHolds(parts, ended, owner);
  const computes = changed.changed.map((id) => ({ project_id: projectId, compute_id: id }));
  const in_flight = await inFlightOf(parts, place);
  return { ok: true, value: { holds: ended.map(({ id }) => id), computes, budgets: [], in_flight } };
}

function inFlightOf(parts: OperatorParts, { projectId, computeId }: ComputePlace): Promise<InFlightDocument[]> {
  return inFlight(parts, { projectId, concerns: (id) => id === computeId });
}

async function endHolds(parts: OperatorParts, holds: readonly Hold[], by: string): Promise<void> {
  if (holds.length === 0) return;
  const atMs = await parts.now();
  for (const { id, projectId, computeId, owner } of holds) {
    const message = `released: hold ${id} of ${owner}`;
    const command = { kind: 'hold', code: 'released', message, owner: by, atMs, projectId, computeId } as const;
    await parts.store.deleteHold(id, { audit: await auditOf(parts, command) });
  }
  await parts.requestReconciles([...new Set(holds.map(({ projectId }) => projectId))]);
}

const GUARD_OF_COMPUTE = 'guards take back lowerings of computes: give the id of a compute with --guard';

function noHold({ daemon }: Pick<OperatorParts, 'daemon'>, id: string): string {
  return `there is no hold ${id.slice(0, 80)}: ebb holds${daemon ? '' : `. ${LOST_HOLD}`}`;
}
