/** Changes that were not expected to restart their compute, and whose answer shows that they do. */
import { expect, it } from 'vitest';
import { applyAction } from '../../src/app/apply/apply.ts';
import { evaluateCompute } from '../../src/app/evaluate-project/evaluate.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { digestKey, SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { ComputeRecord, RestartCause } from '../../src/domain/records/compute-record.ts';
import type { ComputeEvent } from '../../src/ports/compute-events.ts';
import type { OutboxEntry } from '../../src/ports/outbox.ts';
import { aCompute, aRecord, aSchedule, at, currentRules, FREE_SLOTS, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOON = at('2026-03-02T12:00:00Z');
const url = { from: 'text', text: 'http://127.0.0.1/' } as const;
const receiver: Receiver = { ...{ name: 'ops', to: 'webhook', allowedOrigins: [], file: 'ebb.yaml' }, url };

interface Given {
  /** The operations of the answer. */
  operations: string[];
  /** The state of the compute when it was last read. */
  state?: 'idle' | 'active';
  /** Its clients when they were last counted. */
  connections?: number;
  isAnnounced?: boolean;
}

/** What becomes of a change that was thought to restart nothing: of a sleeping compute, or of the timeout of an awake one. */
async function madeOf({ operations, state = 'idle', connections, isAnnounced = false }: Given) {
  const compute = aCompute({ state });
  const wanted = state === 'idle' ? { minCu: 8, maxCu: 8 } : { suspendTimeoutSeconds: 900 };
  const otherwise = state === 'idle' ? { size: { minCu: 8, maxCu: 8 } } : { suspendTimeoutSeconds: 900 };
  const rules = currentRules(aSchedule({ windows: [], otherwise }));
  rules.current.notify = { receivers: [receiver], beforeMs: 15 * 60_000 };
  const clock = { ...REAL.clock, now: () => NOON };
  const store = createMemoryStore(createSteppedClock(0, () => false));
  if (isAnnounced) {
    const digest = { computeIds: [compute.computeId], restartIds: [], toMs: NOON, untilMs: NOON + 3_600_000 };
    await SENT_DIGESTS.put(store, digestKey('ops', 'team-web', NOON), digest);
  }
  const queued: OutboxEntry[] = [];
  const stored: ComputeRecord[] = [];
  const causes: (RestartCause | undefined)[] = [];
  const value = {
    settings: { ...compute, ...wanted },
    state: 'active',
    operations: operations.map((action, nth) => ({ operationId: `op-${nth}`, action, outcome: 'pending' })),
  };
  const samples = connections === undefined ? [] : [{ atMs: NOON - 1_000, connections }];
  const deps = {
    ...{ clock, newId: REAL.newId, fleet: createFleet({ clock }), rules, mode: 'enforce' },
    reportEvent: (event: ComputeEvent) => event.kind === 'write_ended' && causes.push(event.restartCause),
    ...{ overrides: { holds: [], freezes: [] }, samples: { historyOf: () => new Map([['proxy', samples]]) } },
    outages: { projectAnswers() {}, current: () => new Map(), ended: () => new Map() },
    telemetry: { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } },
    slots: FREE_SLOTS,
    mayWrite: async () => ({ ok: true }),
    api: { accountStatus: () => [], updateCompute: async () => ({ ok: true, value }) },
    store: {
      documents: store.documents,
      putIntent: async () => 'stored',
      async putRecord(...[, , record, , also]: [unknown, unknown, ComputeRecord, unknown, { outbox: OutboxEntry[] }]) {
        stored.push(record);
        queued.push(...also.outbox);
        return true;
      },
    },
  };
  const evaluated = evaluateCompute(deps as never, { compute, record: aRecord(), projectBusy: false });
  expect(evaluated.plan.actions).toMatchObject([{ disconnects: false }]);
  const lease = { name: compute.projectId, holder: 'd', token: 1 };
  await applyAction(deps as never, lease, evaluated, { decidedBy: { overrides: '', generation: 1 } });
  const told = queued.map(({ body }) => JSON.parse(body)).map(({ kind, text }) => `${kind}: ${text}`);
  return { told, causes, restartedAtMs: stored[0]?.lastDisruption?.atMs };
}

async function toldOf(given: Given): Promise<string[]> {
  return (await madeOf(given)).told;
}

const RESTARTS = ['apply_config', 'suspend_compute', 'start_compute'];

it('a compute that had woken unseen, and was restarted without an announcement, is told', async () => {
  expect(await toldOf({ operations: RESTARTS })).toEqual([
    'connections_dropped: ep-one was changed to 8 CU, which disconnected its clients, if it had any; it was not announced: no schedule made it due',
  ]);
  // Nothing was counted since it has woken.
  expect(await toldOf({ operations: RESTARTS, connections: 0 })).toHaveLength(1);
  // Its owner was told that it restarts if it is awake by then.
  expect(await toldOf({ operations: RESTARTS, isAnnounced: true })).toEqual([]);
});

it('a new timeout that restarts an awake compute is told unless it had no clients', async () => {
  const told = async (connections?: number) =>
    toldOf({ operations: RESTARTS, state: 'active', ...(connections !== undefined && { connections }) });
  expect(await told()).toMatchObject([expect.stringContaining('if it had any; it was not announced')]);
  expect(await told(3)).toMatchObject([expect.stringContaining('(3 when last counted); it was not announced')]);
  expect(await told(0)).toEqual([]);
});

it.each([
  ['stays asleep', []],
  ['is woken for the change, and put to sleep again', ['start_compute', 'suspend_compute']],
  ['takes the change while it runs', ['apply_config']],
])('of a compute that %s nothing is told', async (_, operations) => {
  expect(await toldOf({ operations })).toEqual([]);
});

it('a restart that only the answer shows is counted, and begins the cooldown, as one that was expected', async () => {
  expect(await madeOf({ operations: RESTARTS })).toMatchObject({ causes: ['other'], restartedAtMs: NOON });
  const asleep = await madeOf({ operations: ['start_compute', 'suspend_compute'] });
  expect(asleep).toEqual({ told: [], causes: [undefined], restartedAtMs: undefined });
});
