import type { DecisionDocument } from '../../ports/documents.ts';
import type { AuditListQuery, Caller, OperatorResult, Page, Refusal } from '../../ports/operator.ts';
import { decisionDocument } from './documents.ts';
import { findCompute, isId, unknownCompute } from './find-compute.ts';
import { auditOf, type DaemonParts, fail, type OperatorParts, ownerOf } from './parts.ts';
import { computeOf } from './teams-of.ts';

/** How many refused requests of a minute leave a line; the log has all of them. */
const MOST_REFUSED = 60;
const MINUTE_MS = 60_000;

/** Lines of the audit, newest first. Of an owner: those of its computes, and those that concern the whole fleet. */
export async function listAudit(
  parts: OperatorParts,
  { compute, owner, sinceMs, untilMs, limit, after: first }: AuditListQuery,
): Promise<OperatorResult<Page<DecisionDocument>>> {
  const found = await computeIdOf(parts, compute);
  if (!found.ok) return found;
  const items: DecisionDocument[] = [];
  let after = first;
  do {
    const asked = { computeId: found.value, sinceMs, untilMs, limit: limit - items.length, after };
    const page = await parts.store.audit(asked);
    const own = page.entries.filter((entry) => {
      if (owner === undefined || entry.computeId === '') return true;
      return (entry.owner ?? ownerOf(parts, entry.computeId)) === owner;
    });
    items.push(...own.map(decisionDocument));
    after = page.next;
  } while (after !== undefined && items.length < limit);
  return { ok: true, value: { items, next: after ?? null } };
}

/** The id of the compute that is written; also of one that is gone, since it has a history too. */
export async function computeIdOf(
  parts: OperatorParts,
  written: string | undefined,
): Promise<OperatorResult<string | undefined>> {
  if (written === undefined) return { ok: true, value: undefined };
  const found = await findCompute(parts, written);
  if (!found.ok && found.error.code === 'invalid') return found;
  const computeId = found.ok ? found.value.computeId : (written.split('/').at(-1) ?? '');
  return isId(computeId) ? { ok: true, value: computeId } : fail('invalid', unknownCompute(computeId));
}

/** Notes what people tried that their token does not allow. A store that is away costs the line, which the log has as well. */
export function createRefusals(
  parts: OperatorParts & { daemon: DaemonParts },
): (refusal: Refusal, caller: Caller) => Promise<void> {
  let minute = 0;
  let count = 0;
  return async ({ what, message, targets }, caller) => {
    try {
      const atMs = await parts.now();
      const now = Math.floor(atMs / MINUTE_MS);
      count = now === minute ? count + 1 : 1;
      minute = now;
      if (count > MOST_REFUSED) return;
      const compute = targets === 'all' ? undefined : await computeOf(parts, targets[0] ?? '');
      const place = compute && { projectId: compute.projectId, computeId: compute.computeId };
      const command = { kind: 'refused', code: 'forbidden', owner: caller.who, atMs, ...place } as const;
      const entry = await auditOf({ ...parts, caller }, { ...command, message: `${what}: ${message}` });
      await parts.store.appendHistory([entry]);
    } catch (error) {
      parts.log.warn({ event: 'ebb.history_failed', err: error }, 'a refused request is missing in the audit');
    }
  };
}
