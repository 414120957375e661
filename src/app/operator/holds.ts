import { mapInTurns } from '../../common/in-turns.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { HoldDocument } from '../../ports/documents.ts';
import type { HoldRequest, OperatorResult, Page, PageQuery } from '../../ports/operator.ts';
import { holdProblem } from './check-request.ts';
import { holdDocument, pageOf } from './documents.ts';
import { findCompute } from './find-compute.ts';
import { limitOfNew, limitsOf } from './hold-limits.ts';
import { inFlight } from './in-flight.ts';
import { auditOf, fail, type OperatorParts, shortId } from './parts.ts';

/** A team may have this many of the store's holds; the rest is left to others. */
const MOST_HOLDS_OF_TEAM = 1000;

/** Sets a hold, and asks for a reconcile of its project. */
export async function setHold(parts: OperatorParts, request: HoldRequest): Promise<OperatorResult<HoldDocument>> {
  const problem = holdProblem(request);
  if (problem !== undefined) return fail('invalid', problem);
  const found = await findCompute(parts, request.compute);
  if (!found.ok) return found;
  const place = found.value;
  const teams = parts.caller?.teams;
  const nowMs = await parts.now();
  const overQuota = teams && quotaProblem(await parts.store.holds(nowMs), teams);
  if (overQuota !== undefined) return fail('full', overQuota);
  const hold: Hold = {
    ...newHold(request, { ...place, id: shortId('h', parts.newId) }, nowMs),
    ...(teams && { teams }),
  };
  const { owner, createdAtMs: atMs } = hold;
  const command = { kind: 'hold', code: 'hold', message: describeHold(hold), owner, atMs, ...place } as const;
  const put = await parts.store.putHold(hold, { audit: await auditOf(parts, command) });
  if (!put.ok) return fail('full', `there are ${put.error.limit} holds already: release some`);
  await parts.requestReconciles([hold.projectId]);
  const { projectId } = place;
  const in_flight = await inFlight(parts, { projectId, concerns: (id) => id === place.computeId });
  return { ok: true, value: { ...holdDocument(hold, await limitOfNew(parts, hold)), in_flight } };
}

/** The limit is soft: two daemons that are asked at the same instant may each take the last place. */
function quotaProblem(holds: readonly Hold[], teams: readonly string[]): string | undefined {
  const full = teams.find((team) => holds.filter((hold) => hold.teams?.includes(team)).length >= MOST_HOLDS_OF_TEAM);
  return full && `team ${full} has ${MOST_HOLDS_OF_TEAM} holds, the most that a team may have: release some`;
}

/** Lists active holds by compute and age. */
export async function listHolds(parts: OperatorParts, query: PageQuery): Promise<OperatorResult<Page<HoldDocument>>> {
  const holds = await parts.store.holds(await parts.now());
  const byCompute = ({ projectId, computeId, createdAtMs, id }: Hold) =>
    `${projectId}/${computeId}/${isoInstant(createdAtMs)}/${id}`;
  const { items, next } = pageOf(holds, byCompute, query);
  const limitOf = await limitsOf(parts);
  const documents = await mapInTurns(items, (hold) => holdDocument(hold, limitOf(hold)), parts.clock);
  return { ok: true, value: { items: documents, next } };
}

/** Finds an active hold. */
export async function findHold(parts: OperatorParts, id: string): Promise<OperatorResult<HoldDocument>> {
  const holds = await parts.store.holds(await parts.now());
  const hold = holds.find((one) => one.id === id);
  if (!hold) return fail('not_found', 'there is no such hold: it has expired or was released');
  return { ok: true, value: holdDocument(hold, (await limitsOf(parts))(hold)) };
}

function newHold(request: HoldRequest, place: Pick<Hold, 'id' | 'projectId' | 'computeId'>, nowMs: number): Hold {
  const { owner, reason, forSeconds, size, suspendTimeoutSeconds, freeze } = request;
  return {
    ...place,
    owner,
    reason,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + forSeconds * 1000,
    ...(size && { size }),
    ...(suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds }),
    ...(freeze && { freeze: true as const }),
  };
}

function describeHold({ size, suspendTimeoutSeconds, freeze, expiresAtMs, reason }: Hold): string {
  const parts = [
    ...(size ? [`size ${formatSize(size)} CU`] : []),
    ...(suspendTimeoutSeconds === undefined ? [] : [`suspend_after ${formatSuspendTimeout(suspendTimeoutSeconds)}`]),
    ...(freeze ? ['as it is'] : []),
  ];
  return `held: ${parts.join(', ')}, until ${isoInstant(expiresAtMs)}: ${reason}`;
}
