import type { Caller, Operator, OperatorResult } from '../../ports/operator.ts';
import { computeIdOf, listAudit } from './audit.ts';
import { ownerProblem } from './check-request.ts';
import { listComputes } from './computes.ts';
import { boundedLimit, decisionDocument } from './documents.ts';
import { listFreezes, setFreeze, unfreeze } from './freezes.ts';
import { listHolds, setHold } from './holds.ts';
import { listNotifications, retryOrDropNotifications } from './notifications.ts';
import { auditOf, fail, type OperatorParts } from './parts.ts';
import { release } from './release.ts';
import { restore } from './restore.ts';
import { status } from './status.ts';
import { listRecords, listUsage } from './stored.ts';
import { waste } from './waste.ts';

/** The digest of a policy set, or enough of its beginning, as the log and `ebb status` give it. */
const HASH = /^[0-9a-f]{12,64}$/;

/** What people may ask and tell, on a store, with or without a daemon. Rejects where the store can't be asked. */
export function createOperator(parts: OperatorParts): Operator {
  const by = (caller: Caller | undefined) => (caller ? { ...parts, caller } : parts);
  return {
    status: (query) => status(parts, query),
    computes: (query) => listComputes(parts, query),
    async decisions({ compute, limit }) {
      const found = await computeIdOf(parts, compute);
      if (!found.ok) return found;
      const { value: computeId } = found;
      const entries = await parts.store.history({
        limit: boundedLimit(limit),
        ...(computeId !== undefined && { computeId }),
      });
      return { ok: true, value: entries.map(decisionDocument) };
    },
    audit: (query) => listAudit(parts, query),
    holds: (query) => listHolds(parts, query),
    hold: (request, caller) => setHold(by(caller), request),
    release: (request, caller) => release(by(caller), request),
    freezes: (query) => listFreezes(parts, query),
    freeze: (request, caller) => setFreeze(by(caller), request),
    unfreeze: (request, caller) => unfreeze(by(caller), request),
    approve: (request, caller) => approve(by(caller), request),
    restore: (request, caller) => restore(by(caller), request),
    records: (query) => listRecords(parts, query),
    usage: (query) => listUsage(parts, query),
    waste: (query) => waste(parts, query),
    notifications: () => listNotifications(parts),
    retryOrDropNotifications: (request, caller) => retryOrDropNotifications(by(caller), request),
  };
}

async function approve(
  parts: OperatorParts,
  { hash, owner }: { hash: string; owner: string },
): Promise<OperatorResult<{ hash: string }>> {
  const problem = ownerProblem(owner);
  if (problem !== undefined) return fail('invalid', problem);
  if (!HASH.test(hash)) return fail('invalid', 'the hash of a policy set has hexadecimal digits only: see ebb status');
  const staged = parts.daemon?.staged().map((one) => one.hash);
  if (staged && !staged.some((one) => one.startsWith(hash))) {
    const message = `the set that is staged is ${staged.join(', or ')}`;
    return fail('not_found', staged.length > 0 ? message : 'no policy set waits for approval');
  }
  const atMs = await parts.now();
  const message = `policy set ${hash} may become current`;
  const audit = await auditOf(parts, { kind: 'approve', code: 'approved', message, owner, atMs });
  await parts.store.approve({ hash, who: owner, atMs }, { audit });
  await parts.requestReconciles(await parts.store.projectIds());
  return { ok: true, value: { hash } };
}
