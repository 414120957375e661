import type { HistoryEntry } from '../../domain/records/history.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { DecisionDocument } from '../../ports/documents.ts';
import type { AuditListQuery, Caller, OperatorResult, Page, Refusal } from '../../ports/operator.ts';
import { decisionDocument } from './documents.ts';
import { findCompute, isId, unknownCompute } from './find-compute.ts';
import { auditOf, type DaemonView, fail, type OperatorParts, ownerOf } from './parts.ts';
import { computeOf } from './teams-of.ts';

/** Refused requests beyond this number in a minute are only logged, by the HTTP server. */
const MAX_REFUSED = 60;
/** A filtered search reads at least this many entries at a time. */
const SEARCH_PAGE = 500;

/** Lists the audit entries that match every given field, newest first. An owner's entries include those about the whole fleet. */
export async function listAudit(
  parts: OperatorParts,
  { compute, sinceMs, untilMs, limit, after: first, ...filter }: AuditListQuery,
): Promise<OperatorResult<Page<DecisionDocument>>> {
  const found = await computeIdOf(parts, compute);
  if (!found.ok) return found;
  const items: DecisionDocument[] = [];
  let after = first;
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  let size = isFiltered ? Math.max(limit, SEARCH_PAGE) : limit;
  for (;;) {
    const { entries, next } = await parts.store.audit({ computeId: found.value, sinceMs, untilMs, limit: size, after });
    const matching = entries.filter((entry) => matches(parts, filter, entry));
    const last = matching[limit - items.length - 1];
    // The store gives cursors for ends of pages only: read again up to the last entry that fits.
    if (last && last !== matching.at(-1)) {
      size = entries.indexOf(last) + 1;
      continue;
    }
    items.push(...matching.map(decisionDocument));
    after = next;
    if (after === undefined || items.length >= limit) break;
  }
  return { ok: true, value: { items, next: after ?? null } };
}

function matches(
  parts: OperatorParts,
  { owner, kind, policy, who, request }: Pick<AuditListQuery, 'owner' | 'kind' | 'policy' | 'who' | 'request'>,
  entry: HistoryEntry,
): boolean {
  const concernsOwner = () => entry.computeId === '' || (entry.owner ?? ownerOf(parts, entry.computeId)) === owner;
  return (
    (owner === undefined || concernsOwner()) &&
    (kind === undefined || entry.kind === kind) &&
    (policy === undefined || entry.policy === policy || entry.reasons.some((reason) => reason.policy === policy)) &&
    (who === undefined || entry.who === who) &&
    (request === undefined || entry.requestId === request)
  );
}

/** Finds the id of a compute. The compute may be gone, since its history remains. */
export async function computeIdOf(
  parts: OperatorParts,
  target: string | undefined,
): Promise<OperatorResult<string | undefined>> {
  if (target === undefined) return { ok: true, value: undefined };
  const found = await findCompute(parts, target);
  if (!found.ok && found.error.code === 'invalid') return found;
  const computeId = found.ok ? found.value.computeId : (target.split('/').at(-1) ?? '');
  return isId(computeId) ? { ok: true, value: computeId } : fail('invalid', unknownCompute(computeId));
}

/** Returns a function that audits requests which a token does not allow. While the store is unavailable, they are only logged. */
export function createRefusals(
  parts: OperatorParts & { daemon: DaemonView },
): (refusal: Refusal, caller: Caller) => Promise<void> {
  let minute = 0;
  let count = 0;
  return async ({ what, message, targets }, caller) => {
    try {
      const atMs = await parts.now();
      const thisMinute = Math.floor(atMs / MINUTE_MS);
      count = thisMinute === minute ? count + 1 : 1;
      minute = thisMinute;
      if (count > MAX_REFUSED) return;
      const compute = typeof targets === 'string' ? undefined : await computeOf(parts, targets[0] ?? '');
      const place = compute && { projectId: compute.projectId, computeId: compute.computeId };
      const command = { kind: 'refused', code: 'forbidden', owner: caller.who, atMs, ...place } as const;
      const entry = await auditOf({ ...parts, caller }, { ...command, message: `${what}: ${message}` });
      await parts.store.appendHistory([entry]);
    } catch (error) {
      parts.log.warn({ event: 'ebb.history_failed', err: error }, 'a refused request is missing in the audit');
    }
  };
}
