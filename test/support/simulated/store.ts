import type { Freeze } from '../../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../../src/domain/overrides/holds.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import { AUDIT_KINDS, type HistoryEntry } from '../../../src/domain/records/history.ts';
import type { Approval, ConnectionSample, Lease, Store, Stored, WithAudit } from '../../../src/ports/store.ts';
import { memoryDocumentStore } from '../memory-documents.ts';
import { createMemoryGenerations } from '../memory-generations.ts';
import { memoryUsageStore } from '../memory-usage.ts';
import type { SteppedClock } from './clock.ts';
import { createMemoryOutbox } from './outbox.ts';

/** The store of one daemon, in memory, on the time of a test. */
export function createMemoryStore(
  clock: SteppedClock,
  outboxLimit?: number,
  held?: Parameters<typeof createMemoryGenerations>[1],
): Store {
  const queued = createMemoryOutbox(outboxLimit);
  const leases = new Map<string, { lease: Lease; untilMs: number }>();
  const records = new Map<string, Map<string, ComputeRecord>>();
  const slots = new Map<string, Map<string, number>>();
  const samples = new Map<string, readonly ConnectionSample[]>();
  const history: HistoryEntry[] = [];
  const approvals: Approval[] = [];
  const holds = createOverrides<Hold>();
  const freezes = createOverrides<Freeze>();
  const { bytes: _, ...usage } = memoryUsageStore();
  const generations = createMemoryGenerations(() => clock.now(), held);
  let token = 0;
  const revision = () => `${holds.changes()}/${freezes.changes()}`;

  const isHeld = ({ name, token: own }: Lease) => {
    const known = leases.get(name);
    return known?.lease.token === own && known.untilMs > clock.now();
  };
  const recordsOf = (projectId: string) => {
    const known = records.get(projectId) ?? new Map<string, ComputeRecord>();
    records.set(projectId, known);
    return known;
  };
  const slotsOf = (policy: string, nowMs: number) => {
    const known = slots.get(policy) ?? new Map<string, number>();
    slots.set(policy, known);
    for (const [computeId, untilMs] of known) if (untilMs <= nowMs) known.delete(computeId);
    return known;
  };

  const audited = async <T>(also: WithAudit | undefined, outcome: Promise<T>): Promise<T> => {
    if (also?.audit) history.unshift(also.audit);
    return outcome;
  };

  return {
    async acquireLease(name, holder, ttlMs) {
      const known = leases.get(name);
      if (known && isHeld(known.lease)) return undefined;
      token += 1;
      const lease = { name, holder, token };
      leases.set(name, { lease, untilMs: clock.now() + ttlMs });
      return lease;
    },
    async renewLease(lease, ttlMs) {
      if (!isHeld(lease)) return false;
      leases.set(lease.name, { lease, untilMs: clock.now() + ttlMs });
      return true;
    },
    async releaseLease(lease) {
      if (isHeld(lease)) leases.delete(lease.name);
    },
    records: async (projectId) => new Map(recordsOf(projectId)),
    brokenRecords: async () => new Map(),
    async putRecord(projectId, computeId, record, lease, { outbox = [], audit } = {}) {
      if (!isHeld(lease)) return false;
      recordsOf(projectId).set(computeId, frozenCopy(record));
      await queued.appendOutbox(outbox);
      if (audit) history.unshift(audit);
      return true;
    },
    async putIntent(projectId, computeId, record, lease, { ttlMs, decidedBy }) {
      if (!isHeld(lease)) return 'lease_lost';
      const { overrides, generation: number } = decidedBy;
      const current = (await generations.generation())?.number;
      if (overrides !== revision() || (number !== 'any' && number !== current)) return 'outdated';
      leases.set(lease.name, { lease, untilMs: clock.now() + ttlMs });
      recordsOf(projectId).set(computeId, frozenCopy(record));
      return 'stored';
    },
    async pendingWrites(only) {
      return [...records].flatMap(([projectId, ofProject]) =>
        [...ofProject].flatMap(([computeId, record]) =>
          record.intent && projectId === (only ?? projectId) ? [{ projectId, computeId, record }] : [],
        ),
      );
    },
    deleteRecord: async (projectId, computeId, lease) => isHeld(lease) && recordsOf(projectId).delete(computeId),
    projectIds: async () => [...records.keys()].filter((projectId) => recordsOf(projectId).size > 0),
    holds: async (nowMs) => [...holds.at(nowMs).entries],
    freezes: async (nowMs) => [...freezes.at(nowMs).entries],
    overrides: async (nowMs) => ({ holds: holds.at(nowMs), freezes: freezes.at(nowMs), revision: revision() }),
    putHold: (hold, also) => audited(also, holds.put(hold)),
    deleteHold: (id, also) => audited(also, holds.delete(id)),
    putFreeze: (freeze, also) => audited(also, freezes.put(freeze)),
    deleteFreeze: (id, also) => audited(also, freezes.delete(id)),
    approve: (approval, also) => audited(also, Promise.resolve(void approvals.unshift(approval))),
    approvals: async () => approvals,
    ...generations,
    async takeSlot({ policy, computeId, allowed, nowMs, untilMs }) {
      const known = slotsOf(policy, nowMs);
      if (!known.has(computeId) && known.size >= allowed) return false;
      known.set(computeId, untilMs);
      return true;
    },
    releaseSlot: async (policy, computeId) => void slots.get(policy)?.delete(computeId),
    slotsInUse: async (policy, nowMs) => [...slotsOf(policy, nowMs).keys()].toSorted(),
    appendHistory: async (entries) => void history.unshift(...entries.toReversed()),
    async audit({ computeId, sinceMs, untilMs, limit, after = Number.POSITIVE_INFINITY }) {
      // Newest first; an entry keeps its number while others are added.
      const found = history
        .map((entry, index) => ({ entry, number: history.length - index }))
        .filter(({ entry, number }) => AUDIT_KINDS.has(entry.kind) && number < Number(after))
        .filter(({ entry }) => entry.atMs >= sinceMs && entry.atMs <= untilMs)
        .filter(({ entry }) => computeId === undefined || entry.computeId === computeId);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        entries: page.map(({ entry, number }) => ({ id: String(number), ...entry })),
        ...(last && found.length > page.length && { next: String(last.number) }),
      };
    },
    history: async ({ computeId, limit, withoutAudit }) =>
      history
        .filter((entry) => computeId === undefined || entry.computeId === computeId)
        .filter(({ kind }) => !withoutAudit || !AUDIT_KINDS.has(kind))
        .slice(0, limit),
    putSamples: async (computeId, counted) => void samples.set(computeId, counted),
    samples: async (computeId) => [...(samples.get(computeId) ?? [])],
    ...queued,
    ...usage,
    ...memoryDocumentStore(),
    storeId: async () => 'memory',
    timeMs: async () => Date.now(),
    close: async () => {},
  };
}

/** A copy that all readers may share: nobody can change it. Parts of an earlier copy are taken over. */
function frozenCopy<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const copy = Array.isArray(value)
    ? value.map(frozenCopy)
    : Object.fromEntries(Object.entries(value).map(([key, of]) => [key, frozenCopy(of)]));
  return Object.freeze(copy) as Value;
}

/** Holds, or freezes. */
function createOverrides<Entry extends { id: string; expiresAtMs: number }>() {
  const entries = new Map<string, Entry>();
  const ended = new Set<string>();
  let changes = 0;
  return {
    changes: () => changes,
    at: (nowMs: number): Stored<Entry> => ({
      entries: [...entries.values()].filter(({ expiresAtMs }) => expiresAtMs > nowMs),
      endedIds: new Set(ended),
    }),
    async put(entry: Entry) {
      if (!ended.has(entry.id)) entries.set(entry.id, entry);
      changes += 1;
      return { ok: true as const };
    },
    async delete(id: string) {
      ended.add(id);
      changes += 1;
      return entries.delete(id);
    },
  };
}
