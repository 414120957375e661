/** What `ebb restore` shows before it asks: of a large fleet first a table by team, of one team each compute. */
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { createOperatorClient } from '../../src/adapters/http/operator-client.ts';
import { startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { DaemonView } from '../../src/app/operator/parts.ts';
import { readingCollection, readingText } from '../../src/app/readings/reading.ts';
import { askAndSend, cancel, requestsOfTeam } from '../../src/cli/restore.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { DaemonOperator, Operator } from '../../src/ports/operator.ts';
import { aCompute, aRecord, at, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { makeFolder } from '../support/platform.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');
const CHANGED = { minCu: 2, maxCu: 4, suspendTimeoutSeconds: 600 };
const TEAMS = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => `team-${letter}`);
const OF_EACH = 50;
const OWNERS = TEAMS.map((team) => [[`${team}-*`], team] as const);
const TOKEN = 'token-of-ann-0123456789';
const ALL = { computes: 'all', owner: 'ann', now: false } as const;

let printed: string;
beforeEach(() => {
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** 300 computes of six teams, that a daemon or only a store knows. Of each team one compute is left to policies, and one goes back in part. */
async function aFleet(known: 'to a daemon' | 'to a store', read: readonly string[] = TEAMS) {
  const clock = createSteppedClock(NOW, () => false);
  const store = createMemoryStore(clock);
  const fleet = createFleet({ clock });
  const policies = compiled();
  for (const team of TEAMS) {
    const name = `${team}-api`;
    const project = { account: 'default', projectId: team, name, regionId: 'aws-eu-central-1', updatedAtMs: NOW };
    const identity = { account: 'default', projectId: team, projectName: name };
    const lease = await store.acquireLease(`project-${team}`, 'before', 1000);
    if (!lease) throw new Error('the lease is held');
    const computes = Array.from({ length: OF_EACH }, (_, index) =>
      aCompute({ ...identity, computeId: `ep-${team}-${index}`, ...CHANGED, state: 'idle' }),
    );
    for (const [index, compute] of computes.entries()) {
      const setBy = { ...(index < 2 && { size: 'night' }), ...(index < 1 && { suspend_timeout: 'night' }) };
      const record = aRecord({ lastApplied: CHANGED, setBy });
      await store.putRecord(team, compute.computeId, record, lease);
      const about = { policies, compute, record, nowMs: NOW, mode: 'enforce' as const, projectBusy: false };
      fleet.putEvaluated({ compute, record, ...evaluate(about) });
    }
    await store.releaseLease(lease);
    const reading = {
      project,
      computes,
      unreadable: [],
      branchesRefused: false,
      includedWrites: new Map(),
      readAtMs: NOW,
    };
    if (known === 'to a store' && read.includes(team))
      await store.putDocument(readingCollection(team), team, readingText(reading));
  }
  const view = { fleet, policies: () => policies, owners: () => OWNERS, revision: () => undefined };
  return createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW },
    requestReconciles: async () => {},
    ...(known === 'to a store' ? { owners: OWNERS } : { daemon: view as unknown as DaemonView }),
  });
}

it('of 300 computes is a table by team, and a row for each outcome', async () => {
  const operator = await aFleet('to a store');
  await askAndSend(operator, [ALL], { all: true, yes: true });
  const lines = printed.split('\n');
  expect(lines.slice(0, 3)).toEqual([
    'team    to go back  in part  left to policies  nothing to do',
    'team-a          49        1                 1              0',
    'team-b          49        1                 1              0',
  ]);
  expect(lines).toHaveLength(15);
  expect(printed).toContain('288 computes: ep-team-a-2, ');
  expect(printed).toMatch(
    /\n294 computes to go back, 6 of them in part; 6 left to policies.*\nDetails: .*--owner TEAM\n$/,
  );
});

it.each(['to a daemon', 'to a store'] as const)(
  'of a team has a row for each of its computes, known %s',
  async (known) => {
    const operator = await aFleet(known);
    const requests = await requestsOfTeam(operator, 'team-c', [ALL]);
    const { computes, count } = await askAndSend(operator, requests, { yes: true, isInDetail: true });
    expect(printed.match(/^ep-team-c-\d+ /gm)).toHaveLength(OF_EACH);
    expect(new Set(computes.map(({ project_id }) => project_id))).toEqual(new Set(['team-c']));
    expect(count).toBe(known === 'to a store' ? OF_EACH - 1 : OF_EACH);
    expect(await operator.restore({ ...ALL, preview: true, cancel: true })).toMatchObject({ value: { count } });
  },
);

it('of a team that has no compute is refused, with the teams that have some', async () => {
  const operator = await aFleet('to a store');
  await expect(requestsOfTeam(operator, 'team-x', [ALL])).rejects.toThrow(
    '--owner: nothing belongs to team-x; owners are team-a, team-b, team-c',
  );
});

/** The operator of a daemon over HTTP, asked with a token of one team. */
async function overHttp(operator: Operator, team: string): Promise<Operator> {
  const folder = await makeFolder({ tokens: `ann [operate ${team}]: ${TOKEN}\n` });
  onTestFinished(() => folder.remove());
  const log = memoryLog();
  const ofDaemon = {
    ...operator,
    staleness: () => undefined,
    refused: async () => {},
    teamsOf: async (_kind: string, id: string) => TEAMS.filter((name) => id.startsWith(`ep-${name}-`)),
  };
  const server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, log, operator: ofDaemon as unknown as DaemonOperator },
    tokens: createTokens({ log, local: 'known-to-this-machine', file: join(folder.path, 'tokens') }),
  });
  if (!server.ok) throw new Error(server.error);
  onTestFinished(() => server.close());
  return createOperatorClient({ url: server.url, token: TOKEN });
}

it('of a team names the computes that are left out, since their owner is not known', async () => {
  const errors = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const operator = await aFleet('to a store', TEAMS.slice(1));
  const [request] = await requestsOfTeam(operator, 'team-b', [ALL]);
  expect(request?.computes).toHaveLength(OF_EACH);
  expect(errors.mock.calls.map(([text]) => text)).toEqual([
    expect.stringMatching(
      /^note: left out, as the owner is not known here: ep-team-a-0, .* and 45 more; for them, give their ids/,
    ),
  ]);
});

it('with a token of the team goes back over HTTP; with that of another it is shown and refused', async () => {
  const operator = await aFleet('to a daemon');
  const sendWithTokenOf = async (team: string) => {
    const asked = await overHttp(operator, team);
    return askAndSend(asked, await requestsOfTeam(asked, 'team-c', [ALL]), { yes: true, isInDetail: true });
  };
  await expect(sendWithTokenOf('team-d')).rejects.toThrow(
    'ann may do this only in the scope of team-d, and ep-team-c-0 is not',
  );
  expect(printed.match(/^ep-team-c-\d+ /gm)).toHaveLength(OF_EACH);
  expect(await sendWithTokenOf('team-c')).toMatchObject({ count: OF_EACH });
});

it('withdraws with --cancel --owner only the requests of that team', async () => {
  const operator = await aFleet('to a daemon');
  await askAndSend(operator, await requestsOfTeam(operator, 'team-a', [ALL]), { yes: true });
  await askAndSend(operator, await requestsOfTeam(operator, 'team-b', [ALL]), { yes: true });
  const withdrawn = async () => {
    const requests = await requestsOfTeam(operator, 'team-a', [{ ...ALL, cancel: true }]);
    await cancel(operator, requests, {});
  };
  await withdrawn();
  expect(printed.match(/^ep-team-a-\d+ no longer goes back$/gm)).toHaveLength(OF_EACH);
  expect(printed).not.toMatch(/ep-team-b-\d+ no longer/);
  expect(await operator.restore({ ...ALL, cancel: true, preview: true })).toMatchObject({ value: { count: OF_EACH } });
  await withdrawn();
  expect(printed).toMatch(/\nno request waits: nothing is withdrawn\n$/);
});

it('asks for owners once: for all computes, not for each chunk of them, nor for those of a file', async () => {
  const operator = await aFleet('to a store');
  const ids = Array.from({ length: OF_EACH }, (_, index) => `ep-team-a-${index}`);
  const baselines = ids.map((id) => ({ compute_id: id, min_cu: 1, max_cu: 1, suspend_timeout_seconds: 300 }));
  const some = { ...ALL, computes: ids };
  const preview = await operator.restore({ ...some, preview: true });
  expect(preview.ok && preview.value.computes.flatMap(({ owner = [] }) => owner)).toEqual([]);
  await askAndSend(operator, [{ ...some, baselines }], { from: 'baseline.json', yes: true });
  expect(printed).not.toMatch(/^team /m);
  expect(printed).toMatch(/^compute .*\n(ep-.*\n){2}48 computes: ep-team-a-2, /);
});
