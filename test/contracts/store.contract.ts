import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { Lease, Store } from '../../src/ports/store.ts';
import type { TestEngine } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { describeAudit } from './store-audit.contract.ts';
import { describeDocuments } from './store-documents.contract.ts';
import { describeDump } from './store-dump.contract.ts';
import { describeGenerations } from './store-generations.contract.ts';
import { describeHistory } from './store-history.contract.ts';
import { describeIntents } from './store-intents.contract.ts';
import { describeOutbox } from './store-outbox.contract.ts';
import { describeOverrides } from './store-overrides.contract.ts';
import { describeUsage } from './store-usage.contract.ts';

const TTL_MS = 15_000;

/** What every store must do; `open` gives the engine that it runs on. */
export function describeStore(open: () => Promise<TestEngine>): void {
  let on: TestEngine;
  let store: Store;
  beforeAll(async () => {
    on = await open();
  });
  beforeEach(async () => {
    store = await createStore(on);
    await on.reset();
  });
  afterAll(() => on.close());

  /** Takes a lease that is certain to be free. */
  async function lease(name = 'project-1', holder = 'daemon-1', ttlMs = TTL_MS): Promise<Lease> {
    const locked = await store.acquireLease(name, holder, ttlMs);
    if (locked === undefined) throw new Error(`the lease ${name} is held`);
    return locked;
  }

  async function untilExpired(held: Lease): Promise<void> {
    await eventually(() => isHeld(store, held)).toBe(false);
  }

  const current = () => ({ store, on });
  describeOverrides(current);
  describeGenerations(current);
  describeHistory(current);
  describeIntents(current);
  describeOutbox(() => ({ store, createStore: (limits) => createStore({ ...on, limits }) }));
  describeAudit(current);
  describeDump(current);
  describeUsage(current);
  describeDocuments(() => ({ store, other: () => createStore(on) }));

  describe('leases', () => {
    it('gives a lease to one holder at a time, also when many ask at once', async () => {
      const asked = await Promise.all(
        ['daemon-1', 'daemon-2', 'daemon-3', 'daemon-1'].map((holder) =>
          store.acquireLease('project-1', holder, TTL_MS),
        ),
      );
      expect(asked.filter((locked) => locked !== undefined)).toHaveLength(1);
      expect(await store.acquireLease('project-2', 'daemon-2', TTL_MS)).toBeDefined();
    });

    it('gives a released lease to the next one, with a greater token', async () => {
      const first = await lease();
      await store.releaseLease(first);
      const second = await lease('project-1', 'daemon-2');
      expect(second.token).toBeGreaterThan(first.token);
      expect(await isHeld(store, first)).toBe(false);
      expect(await isHeld(store, second)).toBe(true);
    });

    it('lets a lease expire unless it is renewed', async () => {
      // Long enough to be renewed in time on a busy machine.
      const short = await lease('project-1', 'daemon-1', 1000);
      const kept = await lease('project-2', 'daemon-1', 1000);
      expect(await store.renewLease(kept, TTL_MS)).toBe(true);
      await untilExpired(short);
      expect(await store.renewLease(short, TTL_MS)).toBe(false);
      expect(await store.acquireLease('project-1', 'daemon-2', TTL_MS)).toBeDefined();
      expect(await store.acquireLease('project-2', 'daemon-2', TTL_MS)).toBeUndefined();
    });

    it('gives a lease to the next one that a clock which was ahead has given for an hour', async () => {
      const far = await lease('project-1', 'daemon-1', 3_600_000);
      const next = await lease('project-1', 'daemon-2');
      expect(next.token).toBeGreaterThan(far.token);
      expect([await isHeld(store, far), await isHeld(store, next)]).toEqual([false, true]);
    });

    it('does not let a former holder renew or release the lease of the one who came after', async () => {
      const former = await lease('project-1', 'daemon-1', 20);
      await untilExpired(former);
      const current = await lease('project-1', 'daemon-1');
      expect(await store.renewLease(former, TTL_MS)).toBe(false);
      await store.releaseLease(former);
      expect(await isHeld(store, current)).toBe(true);
    });

    it('has one holder at most, and growing tokens, whatever is asked in whatever order', async () => {
      const holders = fc.constantFrom('daemon-1', 'daemon-2', 'daemon-3');
      const step = fc.oneof(
        fc.record({ kind: fc.constant('acquire' as const), holder: holders }),
        fc.record({ kind: fc.constantFrom('renew' as const, 'release' as const), of: fc.nat(3) }),
      );
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
          run += 1;
          await followModel(store, `property-${run}`, steps);
        }),
        { numRuns: 25 },
      );
    });
  });

  describe('records', () => {
    it('gives back what was put, for each compute of a project', async () => {
      const held = await lease();
      expect(await store.putRecord('project-1', 'compute-a', FULL, held)).toBe(true);
      expect(await store.putRecord('project-1', 'compute-b', SMALL, held)).toBe(true);
      expect(await store.records('project-1')).toEqual(new Map([['compute-a', FULL], ['compute-b', SMALL]])); // biome-ignore format: one line
      expect(await store.records('project-2')).toEqual(new Map());
    });

    it('replaces a record whole', async () => {
      const held = await lease();
      await store.putRecord('project-1', 'compute-a', FULL, held);
      await store.putRecord('project-1', 'compute-a', SMALL, held);
      expect((await store.records('project-1')).get('compute-a')).toEqual(SMALL);
    });

    it('knows the projects that have records', async () => {
      const held = await lease();
      await store.putRecord('project-1', 'compute-a', SMALL, held);
      await store.putRecord('project-1', 'compute-b', SMALL, held);
      await store.putRecord('project-2', 'compute-c', SMALL, held);
      expect(await store.projectIds()).toEqual(['project-1', 'project-2']);
      await store.deleteRecord('project-1', 'compute-a', held);
      expect(await store.projectIds()).toEqual(['project-1', 'project-2']);
      await store.deleteRecord('project-1', 'compute-b', held);
      expect(await store.projectIds()).toEqual(['project-2']);
      expect(await store.records('project-1')).toEqual(new Map());
    });

    it('refuses to put or delete for a holder whose lease expired, was released, or belongs to another', async () => {
      const first = await lease('project-1', 'daemon-1', 30);
      await store.putRecord('project-1', 'compute-a', SMALL, first);
      await untilExpired(first);
      const refused = async (stale: Lease) => {
        expect(await store.putRecord('project-1', 'compute-a', FULL, stale)).toBe(false);
        expect(await store.putRecord('project-1', 'compute-new', FULL, stale)).toBe(false);
        expect(await store.deleteRecord('project-1', 'compute-a', stale)).toBe(false);
      };
      await refused(first);
      const second = await lease('project-1', 'daemon-2');
      await refused(first);
      await refused({ ...second, holder: 'daemon-1' });
      await refused({ ...second, token: first.token });
      await store.releaseLease(second);
      await refused(second);
      expect(await store.records('project-1')).toEqual(new Map([['compute-a', SMALL]]));
    });
  });

  describe('identity and time', () => {
    it('keeps its id until it is emptied', async () => {
      const id = await store.storeId();
      const again = await createStore(on);
      expect(await again.storeId()).toBe(id);
      await on.reset();
      expect(await store.storeId()).not.toBe(id);
    });

    it('tells the time of the engine', async () => {
      const before = Date.now();
      const told = await store.timeMs();
      expect(Number.isInteger(told)).toBe(true);
      expect(Math.abs(told - before)).toBeLessThan(60_000);
      expect(await store.timeMs()).toBeGreaterThanOrEqual(told);
    });
  });

  describe('records that this version cannot read', () => {
    it('leaves them out, names their computes until they can be read or are replaced, and says so once', async () => {
      const held = await lease();
      await store.putRecord('project-1', 'compute-a', SMALL, held);
      for (const broken of ['{"version":99,"record":{}}', '{"version":1,"record":{"baseline":3}}', 'not json']) {
        await overwriteRecords(on, broken);
        expect(await store.records('project-1')).toEqual(new Map());
        await store.records('project-2');
        expect(await store.brokenRecords()).toEqual(new Map([['compute-a', 'project-1']]));
      }
      const said = on.log.lines.filter(({ message }) => message.includes('stored record of compute-a'));
      expect(said).toHaveLength(1);
      expect(await store.projectIds()).toEqual(['project-1']);
      expect(await store.putRecord('project-1', 'compute-a', SMALL, held)).toBe(true);
      expect(await store.records('project-1')).toEqual(new Map([['compute-a', SMALL]]));
      expect(await store.brokenRecords()).toEqual(new Map());
    });

    it('keeps fields that it does not know', async () => {
      const held = await lease();
      const newer = { ...SMALL, learnedLater: { a: 1 } };
      await store.putRecord('project-1', 'compute-a', newer, held);
      const read = (await store.records('project-1')).get('compute-a');
      expect(read).toEqual(newer);
    });
  });
}

const SMALL: ComputeRecord = {
  baseline: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 },
  firstSeenAtMs: 1_700_000_000_000,
  lastApplied: {},
  lastDecidedAtMs: 1_700_000_000_001,
  openOperations: [],
};

/** Every field there is: a field that the store forgot would be lost silently. */
const FULL: Required<ComputeRecord> = {
  baseline: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: -1 },
  oneFieldGroupAtATime: true,
  lostWrites: {
    size: [{ fields: { minCu: 1, maxCu: 4 }, atMs: 1_700_000_000_021, seenAtMs: 1_700_000_000_022 }],
    suspend_timeout: [{ fields: { suspendTimeoutSeconds: 60 }, atMs: 1_700_000_000_021 }],
  },
  absentSinceMs: 1_700_000_000_020,
  firstSeenAtMs: 1_700_000_000_000,
  enforcedSinceMs: 1_700_000_000_500,
  lastApplied: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 60 },
  lastDecidedAtMs: 1_700_000_001_000,
  lastSentAtMs: 1_700_000_001_500,
  operationEndedAtMs: 1_700_000_001_600,
  intent: {
    fields: { minCu: 2, maxCu: 2 },
    restart: true,
    before: { minCu: 1 },
    atMs: 1_700_000_002_000,
    policy: 'büro "zeiten"',
  },
  openOperations: [
    { operationId: 'op-1', action: 'apply_config', startedAtMs: 5, policy: 'night', fields: { maxCu: 8 } },
    { operationId: 'op-2', action: 'start_compute', startedAtMs: 6 },
  ],
  failures: { size: { count: 2, lastAtMs: 7, desired: { minCu: 3 }, message: 'no capacity' } },
  wanted: { suspend_timeout: { fields: { suspendTimeoutSeconds: 60 }, sinceMs: 12 } },
  manual: { size: { fields: { minCu: 1, maxCu: 2 }, seenAtMs: 8, raises: true, updatedAtMs: 7 } },
  lastChanges: { size: { before: { minCu: 1, maxCu: 2 }, answeredAtMs: 13, updatedAtMs: 12 } },
  lagging: { size: true },
  baselineChanges: { size: { seenAtMs: 16, before: { minCu: 1, maxCu: 2 } } },
  baselineCandidates: { suspend_timeout: { fields: { suspendTimeoutSeconds: 60 }, readAtMs: 14 } },
  reversals: { suspend_timeout: [9, 10] },
  lastDisruption: { atMs: 11, lowered: true, policy: 'office-hours' },
  setBy: { size: 'office-hours' },
  guardFinding: {
    ...{ guard: 'latency', loweredAtMs: 13, badSinceMs: 14, foundAtMs: 15 },
    ...{ from: { minCu: 1, maxCu: 4 }, to: { minCu: 1, maxCu: 2 }, remedy: 'undo' },
  },
  floors: {
    size: {
      ...{ guard: 'latency', sinceMs: 15, policy: 'office-hours', terms: '0123456789abcdef' },
      ...{ fields: { minCu: 1, maxCu: 4 }, lowered: { minCu: 1, maxCu: 2 } },
    },
  },
  trials: {
    proof: {
      slot: 3,
      flipDelayMs: 21_599_000,
      stoppedAtMs: 1_700_000_000_003,
      baseline: { minCu: 1, maxCu: 2, suspendTimeoutSeconds: -1 },
      terms: '0123456789abcdef',
      sinceMs: 1_700_000_000_001,
      kept: { arm: 'control', isKept: true, sinceMs: 1_700_000_000_002, control: [1, 2], treated: [3, 4] },
    },
    other: { slot: 0, flipDelayMs: 0, baseline: null, terms: '', sinceMs: 1 },
  },
  projectName: 'web-shop',
  renamed: { from: 'shop', atMs: 14, by: ['team-web/office'] },
  restore: { owner: 'ann', askedAtMs: 12, expiresAtMs: 13, now: true },
};

type Step = { kind: 'acquire'; holder: string } | { kind: 'renew' | 'release'; of: number };

/** Does the steps on one lease and on a model of it, a single variable, and compares every answer. */
async function followModel(store: Store, name: string, steps: readonly Step[]): Promise<void> {
  const locked: Lease[] = [];
  let holder: Lease | undefined;

  async function acquire(by: string): Promise<void> {
    const got = await store.acquireLease(name, by, TTL_MS);
    expect(got === undefined).toBe(holder !== undefined);
    if (got === undefined) return;
    expect(got.token).toBeGreaterThan(locked.at(-1)?.token ?? 0);
    locked.push(got);
    holder = got;
  }

  async function use(lease: Lease, kind: 'renew' | 'release'): Promise<void> {
    if (kind === 'renew') {
      expect(await store.renewLease(lease, TTL_MS)).toBe(lease === holder);
      return;
    }
    await store.releaseLease(lease);
    if (lease === holder) holder = undefined;
  }

  for (const step of steps) {
    if (step.kind === 'acquire') await acquire(step.holder);
    else for (const lease of locked.slice(step.of, step.of + 1)) await use(lease, step.kind);
  }
  for (const lease of locked) expect(await isHeld(store, lease)).toBe(lease === holder);
}

/** Whoever holds it may forget what was never there. */
function isHeld(store: Store, lease: Lease): Promise<boolean> {
  return store.deleteRecord('no-project', 'no-compute', lease);
}

async function overwriteRecords({ engine }: TestEngine, text: string): Promise<void> {
  if (engine.kind === 'postgres') {
    await engine.pool.query('UPDATE ebb_record SET body = $1', [text]);
    return;
  }
  await engine.commands.hset(`${engine.prefix}:store:records:project-1`, 'compute-a', text);
}
