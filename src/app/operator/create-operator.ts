import type { Caller, Operator } from '../../ports/operator.ts';
import { approve } from './approve.ts';
import { computeIdOf, listAudit } from './audit.ts';
import { listComputes } from './computes.ts';
import { boundedLimit, decisionDocument } from './documents.ts';
import { listFreezes, setFreeze, unfreeze } from './freezes.ts';
import { listHolds, setHold } from './holds.ts';
import { listNotifications, retryOrDropNotifications } from './notifications.ts';
import type { OperatorParts } from './parts.ts';
import { release } from './release.ts';
import { restore } from './restore.ts';
import { status } from './status.ts';
import { listRecords, listUsage } from './stored.ts';
import { waste } from './waste.ts';

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
