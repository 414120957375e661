import { expect, it } from 'vitest';
import { type ReportDeps, readReports, startReporting } from '../../src/app/operator/daemon-reports.ts';
import { refusedProjects } from '../../src/app/operator/documents.ts';
import type { OperatorParts } from '../../src/app/operator/parts.ts';
import { status } from '../../src/app/operator/status.ts';
import type { DisruptionImpact } from '../../src/app/rollout/disruption-impact.ts';
import { type Candidate, createPolicySets, stateOf } from '../../src/app/rollout/write-permission.ts';
import type { Outages } from '../../src/app/telemetry/outages.ts';
import { describeStatus } from '../../src/cli/status.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { AccountStatus } from '../../src/ports/control-api.ts';
import type { Readiness } from '../../src/ports/documents.ts';
import type { Approval } from '../../src/ports/store.ts';
import { aCompute, aRecord, aSchedule, at, compiled, REAL } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';

const NOON = at('2026-03-02T12:00:00Z');
const policies = compiled(aSchedule());
const compute = aCompute();
const record = aRecord();
const situation = { policies, compute, record, mode: 'observe', projectBusy: false, nowMs: NOON } as const;
const evaluated = { compute, record, ...evaluate(situation) };

/** What daemons share. */
function group() {
  return {
    ...memoryDocumentStore(),
    ...{
      holds: async () => [],
      freezes: async () => [],
      projectIds: async () => [],
      outboxCounts: async () => ({ receivers: [], lost: 0 }),
      generation: async () => undefined,
      approvals: async (): Promise<Approval[]> => [],
    },
  };
}

async function daemonOf(
  store: object,
  {
    isHeld = false,
    nowMs = NOON,
    isAlone = false,
    sets = createPolicySets({ stages: false, accepted: undefined }),
    accounts = [] as AccountStatus[],
    readiness = { ready: true, checks: [] } as Readiness,
    read = ['p-one', 'p-two'],
    refused = [] as ReturnType<Outages['refused']>,
    readAtMs = NOON - 60_000,
  } = {},
) {
  const reporting = startReporting({
    ...{ store, mode: 'observe', version: '1.2.3', rhythm: { resyncMs: 30_000 } },
    newId: REAL.newId,
    api: { accountStatus: () => accounts },
    clock: { now: () => nowMs, every: () => ({ close: async () => {} }) },
    leaderLease: { isHeld: () => isHeld, isAlone },
    fleet: {
      evaluatedComputes: () => (isHeld ? [evaluated] : []),
      ...{
        projectIds: () => ['p-one', 'p-two'],
        listed: (projectId: string) =>
          projectId === 'p-gone' ? undefined : { projectId, name: `name-of-${projectId}` },
        cachedProject: (id: string) => (read.includes(id) ? { computes: [], readAtMs } : undefined),
      },
    },
    ...{ sets, outages: { refused: () => refused } },
    rules: { current: { policies, verified: new Map([['default', { timeout_change: 'restarts' }]]) } },
    runInBackground: async (_task: string, round: () => Promise<void>) => round(),
    readiness: async () => readiness,
  } as unknown as ReportDeps);
  // It reports once at the start.
  await new Promise(setImmediate);
  return reporting;
}

it('daemons tell the store of themselves, the leader also what waits, until they end', async () => {
  const store = group();
  const follower = await daemonOf(store);
  const leader = await daemonOf(store, { isHeld: true });
  const found = await status({ store, now: async () => NOON } as unknown as OperatorParts);
  if (!found.ok) throw new Error(found.error.message);
  expect(found.value).toMatchObject({
    ...{ source: 'store', mode: 'observe', waiting: [{ reason: 'observe', computes: 1 }], unmet_headroom: [] },
    daemons: [
      { leader: true, version: '1.2.3', set_hash: policies.set.hash },
      { leader: false, waiting: [] },
    ],
  });
  expect(describeStatus(found.value).join('\n')).toMatch(
    /daemon: \S+:\d+, leader, observe, version 1\.2\.3, last seen 2026-03-02T12:00:00Z\n(.|\n)*waiting \(observe\): 1/,
  );
  expect(found.value.facts).toContainEqual(
    expect.objectContaining({ account: 'default', fact: 'timeout_change', value: 'restarts', verified: true }),
  );
  expect(describeStatus(found.value).join('\n')).toMatch(
    /verified: a new timeout restarts an awake compute.*\nassumed \(see ebb verify\): a new size leaves/,
  );
  await leader.close();
  expect(await readReports(store, NOON)).toMatchObject([{ leader: false }]);
  await follower.close();
  expect(await readReports(store, NOON)).toEqual([]);
});

it('the status says what waits for the rate limit, and until when', async () => {
  const store = group();
  const waiting = { writes: 45, reads: 1, perMinute: 665, waitedMs: 5_000, inMs: 35_000 };
  await daemonOf(store, { isHeld: true, accounts: [{ account: 'main', key: 'valid', waiting }] });
  const linesAt = async (nowMs: number) => {
    const found = await status({ store, now: async () => nowMs } as unknown as OperatorParts);
    if (!found.ok) throw new Error(found.error.message);
    return describeStatus(found.value).filter((line) => line.startsWith('rate limit'));
  };
  expect(await linesAt(NOON)).toEqual([
    'rate limit of main: 45 changes and 1 reading wait for the limit of 665 requests a minute, until about 2026-03-02T12:00:35Z',
  ]);
  // Another daemon's changes wait longer.
  const more = { ...waiting, writes: 50, reads: 0, inMs: 40_000 };
  await daemonOf(store, { accounts: [{ account: 'main', key: 'valid', waiting: more }] });
  expect(await linesAt(NOON)).toEqual([
    'rate limit of main: 50 changes wait for the limit of 665 requests a minute, until about 2026-03-02T12:00:40Z',
  ]);
  expect(await linesAt(NOON + 40_000)).toEqual([]);
});

it('the status says until when less of the rate limit is used, and why', async () => {
  const store = group();
  const limit = { level: 4, agoMs: 60_000, normalInMs: 3_540_000 };
  await daemonOf(store, {
    isHeld: true,
    accounts: [
      { account: 'main', key: 'valid', limit },
      { account: 'other', key: 'valid' },
    ],
  });
  const linesAt = async (nowMs: number) => {
    const found = await status({ store, now: async () => nowMs } as unknown as OperatorParts);
    if (!found.ok) throw new Error(found.error.message);
    return describeStatus(found.value).filter((line) => line.startsWith('rate limit'));
  };
  expect(await linesAt(NOON)).toEqual([
    'rate limit of main: requests are spread evenly, at 1/4 of the rate, after an answer 429 at 2026-03-02T11:59:00Z; the whole limit is used from 2026-03-02T12:59:00Z on unless another comes',
  ]);
  expect(await linesAt(NOON + 3_600_000)).toEqual([]);
});

it('the status names the projects that daemons are refused, and how', async () => {
  const store = group();
  const times = { sinceMs: NOON - 30_000, lastMs: NOON - 1_000 };
  const message = '403: project is suspended';
  const refusal = (projectId: string, kind: 'read' | 'write' = 'read') => ({ projectId, kind, message, ...times });
  const linesOf = async () => {
    const found = await status({ store, now: async () => NOON } as unknown as OperatorParts);
    if (!found.ok) throw new Error(found.error.message);
    return [
      found.value.refused_projects?.length,
      ...describeStatus(found.value).filter((line) => /refused/.test(line)),
    ];
  };
  expect(await linesOf()).toEqual([undefined]);
  const refused = [refusal('p-one'), refusal('p-one', 'write'), refusal('p-gone')];
  const leader = await daemonOf(store, { isHeld: true, refused });
  const since = 'since 2026-03-02T11:59:30Z';
  const read = "can't be read, so nothing is changed: 403: project is suspended";
  const written = `refused: name-of-p-one: can't be changed: 403: project is suspended; ${since}`;
  expect(await linesOf()).toEqual([2, `refused: name-of-p-one: ${read}; ${since}`, written]);
  // Another daemon knows of others.
  await daemonOf(store, { refused: [refusal('p-one'), refusal('p-two')] });
  const both = `refused: 2 projects (name-of-p-one, name-of-p-two): ${read}; ${since}`;
  expect(await linesOf()).toEqual([3, both, written]);
  await leader.close();
  // A later reading, also of another daemon, shows that it is not refused any more.
  const later = group();
  await daemonOf(later, { isHeld: true, refused: [refusal('p-one')], readAtMs: NOON });
  expect((await readReports(later, NOON))[0]?.refused_projects).toEqual([]);
});

it('a refusal to change a project ends once no change of its computes is failing', () => {
  const refusal = { projectId: 'p', kind: 'write', message: '403', sinceMs: NOON, lastMs: NOON } as const;
  const listedWith = (record: ReturnType<typeof aRecord>) =>
    refusedProjects({
      outages: { refused: () => [refusal] },
      fleet: {
        listed: () => ({ name: 'p' }) as never,
        cachedProject: () => ({ computes: [aCompute()] }) as never,
        latestEvaluation: () => ({ record }) as never,
      },
    }).length;
  const failure = { key: 'k', count: 1, lastAtMs: NOON, message: '403' } as never;
  expect([listedWith(aRecord({ failures: { size: failure } })), listedWith(aRecord())]).toEqual([1, 0]);
});

it('a daemon that was killed is shown for a day, and what nobody can read is left out', async () => {
  const store = group();
  await daemonOf(store, { nowMs: NOON - 23 * 3_600_000 });
  await daemonOf(store, { nowMs: NOON - 25 * 3_600_000 });
  await store.putDocument('daemons', 'x', '{"version":2,"value":{}}');
  expect(await readReports(store, NOON)).toMatchObject([{ last_seen: '2026-03-01T13:00:00Z' }]);
  expect((await store.documents('daemons')).size).toBe(2);
});

it('a daemon on a store of its own is asked itself', async () => {
  const store = group();
  await daemonOf(store, { isAlone: true });
  expect((await store.documents('daemons')).size).toBe(0);
});

it('what every staged part would disconnect is told, so that ebb approve has its number, also if many teams wait', async () => {
  const store = group();
  const sets = createPolicySets({ stages: true, accepted: undefined });
  const impact = { disconnected: 0, computes: 30 } as DisruptionImpact;
  for (let team = 0; team < 5; team += 1) {
    const candidate = { rules: { policies: policies.set }, approvalHash: `${team}`.repeat(64), impact };
    stateOf(sets, `team-${team}`).candidate = candidate as unknown as Candidate;
  }
  await daemonOf(store, { sets });
  const [report] = await readReports(store, NOON);
  expect(report?.staged_sets?.map(({ disconnected }) => disconnected)).toEqual([0, 0, 0, 0, 0]);
  const found = await status({ store, now: async () => NOON } as unknown as OperatorParts);
  const staged = found.ok ? describeStatus(found.value).filter((line) => line.startsWith('staged: ')) : [];
  expect(staged.map((line) => /ebb approve (\d+)$/.exec(line)?.[1])).toEqual(
    [0, 1, 2, 3, 4].map((team) => `${team}`.repeat(64)),
  );
  // What was approved since then is staged no more, though the daemon has not reported again.
  const approvals = async () => [{ hash: '2'.repeat(12), who: 'ann', atMs: NOON }];
  const [later] = await readReports({ ...store, approvals }, NOON);
  expect(later?.staged_sets?.map(({ owner }) => owner)).toEqual(['team-0', 'team-1', 'team-3', 'team-4']);
  expect(later?.staged).toEqual(report?.staged.filter((message) => !message.includes('team-2')));
});

it('the status from the store says which policies a daemon cannot read, in lines of bounded length', async () => {
  const store = group();
  const said = async (nowMs = NOON) => {
    const found = await status({ store, now: async () => nowMs } as unknown as OperatorParts);
    if (!found.ok) throw new Error(found.error.message);
    return { problems: found.value.policy_problems, lines: describeStatus(found.value) };
  };
  expect(await said()).toMatchObject({
    problems: null,
    lines: expect.arrayContaining(['from the store; no daemon has reported in the last day']),
  });
  const problems = ['policies/dev/hours.yaml:3:25: expected one of schedule', 'x'.repeat(5000), ...'abcdefghij'];
  const sets = createPolicySets({ stages: false, accepted: undefined });
  stateOf(sets, 'team-dev').problems = problems;
  await daemonOf(store, { isHeld: true });
  await daemonOf(store, { sets });
  await daemonOf(store, { sets });
  const { problems: shown, lines } = await said();
  expect(lines).toContain(
    'policies: team-dev: the files as last read are invalid: policies/dev/hours.yaml:3:25: expected one of schedule',
  );
  expect(lines).toContain('from the store, as its daemons reported last; --url asks one');
  expect([shown?.length, Math.max(...(shown ?? []).map((one) => one.length))]).toEqual([8, 240]);
  // The report of a daemon that was killed says nothing of the present files.
  expect((await said(NOON + 60_000)).problems).toEqual([]);
});

it('the status from the store says whether daemons were ready when they reported last, and who is the leader no more', async () => {
  const store = group();
  const linesAt = async (nowMs: number) => {
    const found = await status({ store, now: async () => nowMs } as unknown as OperatorParts);
    if (!found.ok) throw new Error(found.error.message);
    return describeStatus(found.value)
      .filter((line) => /^daemon|ready/.test(line))
      .map((line) => line.replace(/[\w.-]+:\d+,/, 'HOST,'));
  };
  const named = ', observe, version 1.2.3, last seen';
  // The first was killed five minutes ago.
  await daemonOf(store, { isHeld: true, nowMs: NOON - 300_000 });
  expect(await linesAt(NOON)).toEqual([
    `daemon: HOST${named} 2026-03-02T11:55:00Z, not heard of since`,
    'not ready: no daemon has reported since 2026-03-02T11:55:00Z, 5 min ago',
  ]);
  const { close } = await daemonOf(store, { isHeld: true, nowMs: NOON });
  expect(await linesAt(NOON + 4_000)).toEqual([
    `daemon: HOST, leader${named} 2026-03-02T12:00:00Z`,
    `daemon: HOST${named} 2026-03-02T11:55:00Z, not heard of since`,
    'ready: HOST, 4 s ago',
  ]);
  expect(await linesAt(NOON)).toContain('ready: HOST, 0 s ago');
  await close();
  const checks = [
    { name: 'queue', ok: true, message: 'answers' },
    { name: 'account main', ok: false, message: `refuses the API key ${'x'.repeat(500)}` },
  ];
  const starting = await daemonOf(store, { isHeld: true, nowMs: NOON + 5_000, read: ['p-two'] });
  expect((await linesAt(NOON + 6_000)).at(-1)).toBe('ready: HOST, 1 s ago; 1 of 2 projects read so far');
  await starting.close();
  await daemonOf(store, { isHeld: true, readiness: { ready: false, checks } });
  const [, , bad = '', ...others] = await linesAt(NOON + 7_000);
  expect(bad).toMatch(/^not ready: account main: refuses the API key x+ \(HOST, 7 s ago\)$/);
  expect([bad.length < 300, others]).toEqual([true, []]);
});
