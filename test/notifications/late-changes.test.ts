import { afterEach, expect, it } from 'vitest';
import type { MessageDocument, Receiver } from '../../src/domain/notifications/notification.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import { EVERY_COMPUTE } from '../../src/domain/policy/selector.ts';
import type { ConnectionCounters, CountRequest } from '../../src/ports/connections.ts';
import { at } from '../support/builders.ts';
import { type SimulatedDaemon, startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MINUTE_MS = 60_000;
const MORNING = at('2026-03-02T08:00:00Z');
/** Each is raised at 08:00, which restarts it. */
const COMPUTES = ['a', 'b', 'c', 'd'];

const AWAKE = { state: 'active', suspendTimeoutSeconds: -1 } as const;

let daemon: SimulatedDaemon | undefined;
afterEach(async () => {
  await daemon?.close();
  daemon = undefined;
});

const SOURCES = `
sources: { main: { from: prometheus, url: "http://127.0.0.1:9090", query: 'sum(connections{compute="$compute"})' } }`;
const HEADROOM = `  - name: connections
    kind: headroom
    select: { computes: ["ep-*"] }
    connections: main
    target: 70%
    max_size: 4
    act: advise
`;

/** A source that counts as many clients of each compute. */
function counting(connections: number): ConnectionCounters {
  const count = async (requests: readonly CountRequest[]) =>
    new Map(requests.map(({ compute }) => [compute.computeId, { ok: true, value: { connections } }] as const));
  return { of: () => ({ count, close: async () => {} }), close: async () => {} };
}

/** A daemon at 07:30; `limits` are those of the policy. With `clients` it counts connections. */
async function startedEarly({
  limits = '',
  owners = [['*', 'team-web']],
  clients,
}: {
  limits?: string;
  owners?: [string, string][];
  clients?: number;
} = {}) {
  const messages: MessageDocument[] = [];
  const receiver: Receiver = {
    ...{ name: 'chat', to: 'webhook', file: 'ebb.yaml', allowedOrigins: [] },
    url: { from: 'text', text: 'http://127.0.0.1/' },
  };
  const started = await startSimulatedDaemon({
    fromMs: MORNING - 30 * MINUTE_MS,
    computes: Object.fromEntries(COMPUTES.map((name) => [name, { ...AWAKE, minCu: 1, maxCu: 1 }])),
    policies: `version: 1${clients === undefined ? '' : SOURCES}
policies:
  - name: hours
    kind: schedule
    select: { computes: ["ep-*"] }
    windows: [{ at: Mon-Fri 08:00-18:00, size: 2-2 }]
    otherwise: { size: 1-1 }
    disruption: { raise: { when: any }, lower: { when: any }, newly_discovered: act${limits} }
${clients === undefined ? '' : HEADROOM}`,
    sender: {
      async send(_receiver, { body }) {
        messages.push(JSON.parse(body));
        return { ok: true };
      },
      close: async () => {},
    },
    ...(clients !== undefined && { counters: counting(clients) }),
    rhythm: {
      samplingMs: MINUTE_MS,
      inventoryMs: MINUTE_MS,
      resyncMs: MINUTE_MS,
      waitingMs: MINUTE_MS,
      shortestRoundMs: 5_000,
    },
    settings: (settings) => ({
      ...settings,
      owners,
      notify: { receivers: [receiver], beforeMs: 15 * MINUTE_MS },
    }),
  });
  daemon = started;
  return { ...started, messages };
}

it('restarts that come much later than announced are told once, with what was in the way', async () => {
  const { clock, setOutage, messages, events } = await startedEarly();
  await clock.runTo(MORNING - 10 * MINUTE_MS);
  expect(messages).toMatchObject([{ kind: 'change_coming', changes: { disconnecting: 4 } }]);
  setOutage(true);
  await clock.runTo(MORNING + 6 * MINUTE_MS);
  setOutage(false);
  await clock.runTo(MORNING + 30 * MINUTE_MS);
  expect(events.filter(({ event }) => event.kind === 'write_ended' && event.outcome === 'applied')).toHaveLength(4);
  expect(messages.slice(1).filter(({ kind }) => kind !== 'outage')).toMatchObject([
    {
      kind: 'change_coming',
      owner: 'team-web',
      compute: null,
      text: expect.stringMatching(
        /^at most 4 of 4 restarts of team-web that were announced for 2026-03-02T08:00:00Z come late: from 2026-03-02T08:0[6-9]:\S+Z on, ep-\w first; reason: control API was not available until /,
      ),
      command: "ebb audit --owner 'team-web' --since 2026-03-02T08:00:00Z",
    },
  ]);
});

it('restarts that a freeze has held since an outage name the freeze, not the outage', async () => {
  const { clock, setOutage, messages, operator } = await startedEarly();
  await clock.runTo(MORNING - 10 * MINUTE_MS);
  setOutage(true);
  await clock.runTo(MORNING + 3 * MINUTE_MS);
  const asked = { owner: 'bob', reason: 'migration', allowRaise: false, select: 'all', forSeconds: 7_200 } as const;
  const frozen = await operator.freeze(asked);
  if (!frozen.ok) throw new Error(frozen.error.message);
  await clock.runTo(MORNING + 6 * MINUTE_MS);
  setOutage(false);
  await clock.runTo(MORNING + 12 * MINUTE_MS);
  await operator.unfreeze({ id: frozen.value.id, owner: 'bob' });
  await clock.runTo(MORNING + 30 * MINUTE_MS);
  expect(messages.filter(({ text }) => text.includes('late'))).toMatchObject([
    {
      text: expect.stringMatching(
        /^at most 4 of 4 restarts .*; reason: frozen by bob until 2026-03-02T08:1[23]:\S+Z: migration$/,
      ),
    },
  ]);
});

it('restarts that come long after the end of their own freeze are told, even if another freeze ends later', async () => {
  const { clock, setOutage, messages, operator } = await startedEarly();
  for (const [projects, minutes] of [
    [['a', 'b'], 5],
    [['c', 'd'], 12],
  ] as const) {
    const select = { ...EVERY_COMPUTE, projects: [...projects] };
    const asked = { owner: 'ann', reason: 'migration', allowRaise: false, select, forSeconds: (30 + minutes) * 60 };
    expect(await operator.freeze(asked)).toMatchObject({ ok: true });
  }
  await clock.runTo(MORNING);
  const announced = messages.filter(({ kind }) => kind === 'change_coming');
  const [from, to] = [5, 12].map((minutes) =>
    new Date(MORNING + minutes * MINUTE_MS).toISOString().replace('.000', ''),
  );
  expect(announced).toMatchObject([{ changes: { disconnecting: 4, from, to } }]);
  setOutage(true);
  await clock.runTo(MORNING + 8 * MINUTE_MS);
  setOutage(false);
  await clock.runTo(MORNING + 30 * MINUTE_MS);
  expect(messages.filter(({ kind }) => kind === 'change_coming').slice(1)).toMatchObject([
    {
      text: expect.stringMatching(
        `^at most 4 of 4 restarts of team-web that were announced for ${from} to ${to} come late`,
      ),
    },
  ]);
});

it('restarts that are in time, or that a limit spreads, are not told again', async () => {
  const { clock, messages, events } = await startedEarly({ limits: ', at_most: 25% in 10m' });
  await clock.runTo(MORNING + 50 * MINUTE_MS);
  expect(events.filter(({ event }) => event.kind === 'write_ended' && event.outcome === 'applied')).toHaveLength(4);
  expect(messages).toMatchObject([{ kind: 'change_coming', changes: { disconnecting: 4 } }]);
});

it('each owner whose restarts come late is told, though a limit then spreads them', async () => {
  const owners = COMPUTES.map((name): [string, string] => [name, `team-${name}`]);
  const { clock, setOutage, messages } = await startedEarly({ limits: ', at_most: 25% in 10m', owners });
  await clock.runTo(MORNING - 10 * MINUTE_MS);
  setOutage(true);
  await clock.runTo(MORNING + 6 * MINUTE_MS);
  setOutage(false);
  await clock.runTo(MORNING + 60 * MINUTE_MS);
  const late = messages.filter(({ text }) => /comes? late/.test(text));
  expect(late.map(({ owner }) => owner).toSorted()).toEqual(owners.map(([, owner]) => owner));
});

it('restarts that another policy set makes due name the set, since when it is current, and who has approved it', async () => {
  const { clock, rules, messages, reconcile } = await startedEarly();
  await clock.runTo(MORNING + 30 * MINUTE_MS);
  const { current } = rules;
  const { set } = current.policies;
  const policies = set.policies.map((policy) =>
    policy.kind === 'schedule'
      ? { ...policy, windows: policy.windows.map((window) => ({ ...window, size: { minCu: 4, maxCu: 4 } })) }
      : policy,
  );
  const hash = '0123456789abcdef';
  rules.current = {
    ...current,
    policies: compilePolicies({ ...set, hash, policies }),
    becameCurrent: [{ hash, currentSinceMs: clock.now(), approver: { who: 'ann' } }],
  };
  for (const name of COMPUTES) await reconcile(name);
  await clock.runTo(MORNING + 40 * MINUTE_MS);
  const dropped = messages.flatMap(({ kind, text }) => (kind === 'connections_dropped' ? [text] : []));
  expect(dropped).toHaveLength(COMPUTES.length);
  for (const text of dropped)
    expect(text).toMatch(
      /not announced: policy set 0123456789ab became current at 2026-03-02T08:30:00Z, approved by ann$/,
    );
});

it('counted clients of announced restarts are in the audit, not in a message for each', async () => {
  const { clock, messages, operator } = await startedEarly({ clients: 7 });
  await clock.runTo(MORNING + 10 * MINUTE_MS);
  expect(messages).toMatchObject([{ kind: 'change_coming', changes: { disconnecting: 4 } }]);
  const audit = await operator.audit({ sinceMs: 0, untilMs: clock.now(), limit: 100 });
  if (!audit.ok) throw new Error(JSON.stringify(audit));
  const reasons = audit.value.items.map((one) => one.reasons.at(-1)?.message);
  expect(reasons).toEqual(COMPUTES.map(() => 'its clients were disconnected (7 when last counted)'));
});

/** An operation of somebody else in a project, from 07:58 on; it ends with all faults. */
async function withOperationIn({ platform, clock }: SimulatedDaemon, name: string) {
  await clock.runTo(MORNING - 2 * MINUTE_MS);
  await platform.control('faults', { kind: 'operation', outcome: 'hang', project: name });
  const path = `/projects/${name}/endpoints/ep-${name}/restart`;
  await fetch(`${platform.url}${path}`, { method: 'POST', headers: { authorization: `Bearer ${platform.apiKey}` } });
}

it.each([
  ['without a limit', ''],
  ['though a limit has spread the others', ', at_most: 50% in 1m'],
])('a restart that an operation has held is told as late, %s', async (_, limits) => {
  const started = await startedEarly({ limits });
  const { clock, messages, platform } = started;
  await withOperationIn(started, 'a');
  await clock.runTo(MORNING + 5 * MINUTE_MS);
  await platform.clearFaults();
  await clock.runTo(MORNING + 20 * MINUTE_MS);
  expect(messages.slice(1).map(({ text }) => text)).toEqual([
    expect.stringMatching(
      /^1 of 4 restarts of team-web .* comes late: ep-a at \S+; reason: still at 2026-03-02T08:0[56]:00Z, an operation of this compute is under way$/,
    ),
  ]);
});
