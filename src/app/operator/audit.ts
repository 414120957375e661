import type { HistoryEntry } from '../../domain/records/history.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { DecisionDocument } from '../../ports/documents.ts';
import type { AuditListQuery, Caller, OperatorResult, Page, Refusal } from '../../ports/operator.ts';
import { decisionDocument } from './documents.ts';
import { findCompute, isId, unknownCompute } from './find-compute.ts';
import { auditOf, type DaemonView, fail, type OperatorParts, ownerOf } from './parts.ts';
import { computeOf } from './teams-of.ts';

/** Refused requests that are audited in a minute; the log has all of them. */
const MOST_REFUSED = 60;
/** So many lines are searched at a time, however few are still wanted. */
const SEARCH_PAGE = 500;

/**
 * Lines of the audit of which all that is asked is true, newest first. Of an owner: those of its computes, and those that concern the whole
 * fleet.
 */
export async function listAudit(
  parts: OperatorParts,
  { compute, sinceMs, untilMs, limit, after: first, ...asked }: AuditListQuery,
): Promise<OperatorResult<Page<DecisionDocument>>> {
  const found = await computeIdOf(parts, compute);
  if (!found.ok) return found;
  const items: DecisionDocument[] = [];
  let after = first;
  const isNarrowed = Object.values(asked).some((one) => one !== undefined);
  let size = isNarrowed ? Math.max(limit, SEARCH_PAGE) : limit;
  for (;;) {
    const { entries, next } = await parts.store.audit({ computeId: found.value, sinceMs, untilMs, limit: size, after });
    const own = entries.filter((entry) => isAsked(parts, asked, entry));
    const last = own[limit - items.length - 1];
    // The next page begins after the last line of this one: what has more is asked for again, up to that line.
    if (last && last !== own.at(-1)) {
      size = entries.indexOf(last) + 1;
      continue;
    }
    items.push(...own.map(decisionDocument));
    after = next;
    if (after === undefined || items.length >= limit) break;
  }
  return { ok: true, value: { items, next: after ?? null } };
}

function isAsked(
  parts: OperatorParts,
  { owner, kind, policy, who, request }: Pick<AuditListQuery, 'owner' | 'kind' | 'policy' | 'who' | 'request'>,
  entry: HistoryEntry,
): boolean {
  const isOwn = () => entry.computeId === '' || (entry.owner ?? ownerOf(parts, entry.computeId)) === owner;
  return (
    (owner === undefined || isOwn()) &&
    (kind === undefined || entry.kind === kind) &&
    (policy === undefined || entry.policy === policy || entry.reasons.some((reason) => reason.policy === policy)) &&
    (who === undefined || entry.who === who) &&
    (request === undefined || entry.requestId === request)
  );
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
  parts: OperatorParts & { daemon: DaemonView },
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
