/** Policy sets of several teams, of real files: each team's part is read, staged and approved by itself. */
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { digestKey, SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import { createOverrides } from '../../src/app/overrides.ts';
import { type ActivateDeps, advanceRules, startWithRules } from '../../src/app/rollout/activate.ts';
import { takeDelayed, takeReading } from '../../src/app/rollout/reload.ts';
import {
  createPolicySets,
  describeSets,
  exportSets,
  policyProblems,
  stagedSets,
  stateOf,
} from '../../src/app/rollout/write-permission.ts';
import { compileRules } from '../../src/app/rules.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import { loadToRun } from '../../src/cli/or-fail.ts';
import { rulesFromFiles, rulesOf } from '../../src/compose/rules-from-files.ts';
import type { Compute, Size } from '../../src/domain/compute/compute.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { aCompute, at } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { makeFolder } from '../support/platform.ts';
import { replaceFile } from '../support/replace-file.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryQueue } from '../support/simulated/queue.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const TEAMS = ['a', 'b', 'c', 'd', 'e', 'f'];
const SETTINGS = settingsOf(...TEAMS);
const COMMON = `version: 1
policies:
  - { name: stop, kind: freeze, select: { projects: [none] }, at: always }
`;
const signal = new AbortController().signal;

/** Everything of a team at this size, always. */
const sized = (team: string, size: string, more = 'priority: 0') =>
  `version: 1\npolicies:\n  - { name: size, kind: schedule, ${more}, select: { projects: ["${team}-*"] }, windows: [{ at: always, size: ${size} }], otherwise: leave, disruption: { lower: { when: any }, newly_discovered: act } }\n`;

/** Files of these teams, beside one of no team. */
function settingsOf(...teams: string[]): string {
  const scopes = teams.map((team) => `  ${team}: { policies: "policies/${team}/**", projects: ["${team}-*"] }\n`);
  const paths = ['common.yaml', ...teams.map((team) => `${team}/**`)].map((path) => `"policies/${path}"`);
  return `policies: [${paths.join()}]\n${teams.length === 0 ? '' : `teams:\n${scopes.join('')}`}`;
}

/** Ten active computes of each team, at 0.25-2. */
const COMPUTES = TEAMS.flatMap((team) =>
  Array.from({ length: 10 }, (_, index): Compute => {
    const name = `${team}-${index}`;
    return aCompute({ projectId: `p-${name}`, projectName: name, computeId: `ep-${name}` });
  }),
);

/** An enforcing daemon with files of six teams, as far as its rules go. */
async function aDaemon(files: Record<string, string> = {}) {
  const all = Object.fromEntries(TEAMS.map((team) => [`policies/${team}/size.yaml`, sized(team, '0.25-2')]));
  const folder = await makeFolder({ 'ebb.yaml': SETTINGS });
  onTestFinished(() => folder.remove());
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  };
  for (const [path, text] of Object.entries({ 'policies/common.yaml': COMMON, ...all, ...files }))
    await write(path, text);
  const readAgain = () => readSettings({ env: { EBB_MODE: 'enforce' }, cwd: folder.path });
  const read = readAgain();
  if (!read.ok) throw new Error(read.problems.join());
  const { settings } = read;
  const source = rulesFromFiles({
    readSettings: readAgain,
    settings,
    configFile: join(folder.path, 'ebb.yaml'),
    cwd: folder.path,
  });
  const clock = createSteppedClock(NOW_MS, () => false);
  const log = memoryLog();
  const gauges = new Map<string, number>();
  const metrics = {
    ...{ increment() {}, observe() {}, clear() {} },
    set: (name: string, { owner = '' }: Record<string, string>, value: number) =>
      void gauges.set(`${name} ${owner}`, value),
  };
  const telemetry = { log, metrics };
  const fleet = createFleet({ clock });
  const projects = COMPUTES.map(({ account, projectId, projectName }) => ({ account, projectId, name: projectName }));
  for (const compute of COMPUTES) {
    const project = projects.find(({ projectId }) => projectId === compute.projectId);
    fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: NOW_MS, readAtMonotonicMs: 0 } as never);
  }
  const policies = await loadToRun(
    settings.policies.map((path) => join(folder.path, path)),
    settings,
  );
  const api: { isDown: boolean; deadlineMs?: number | undefined } = { isDown: false };
  const deps = {
    ...{ mode: 'enforce', clock, fleet, telemetry, rhythm: { resyncMs: 60_000 }, scheduledBoundaries: new Set() },
    rules: { current: compileRules(rulesOf(settings, policies)) },
    sets: createPolicySets({ stages: true, accepted: undefined }),
    ...{
      store: createMemoryStore(clock),
      queue: createMemoryQueue(clock),
      overrides: createOverrides({ telemetry } as never),
    },
    ...{
      samples: { historyOf: () => new Map() },
      slots: { isAtOnceReached: () => false, isAtMostReached: () => false },
      reportEvent: () => {},
    },
    api: {
      async *listProjects({ deadlineMs }: { deadlineMs?: number }) {
        api.deadlineMs = deadlineMs;
        if (api.isDown) yield { ok: false, error: { code: 'unauthorised', account: 'default', message: 'not sent' } };
        else yield { ok: true, value: projects };
      },
      listComputes: async (project: { projectId: string }) => ({
        ok: true,
        value: { computes: COMPUTES.filter(({ projectId }) => projectId === project.projectId), unreadable: [] },
      }),
    },
    outages: createOutages(telemetry, clock),
    storeClock: { lastExcessiveOffsetMs: () => undefined },
  } as unknown as ActivateDeps & Parameters<typeof exportSets>[0];
  onTestFinished(() => deps.queue.close(0));
  return {
    ...{ deps, write, log, clock, api },
    folder: folder.path,
    async reload({ isRequested = true } = {}) {
      const reading = await source.read();
      await takeReading(deps, reading, { isRequested, signal });
      exportSets(deps);
      return reading;
    },
    gauge: (name: string, owner = '') => gauges.get(`${name} ${owner}`),
    /** The maximum that the policies give the first compute of each team now; frozen, or none. */
    sizes: () =>
      Object.fromEntries(
        TEAMS.map((team) => {
          const compute = COMPUTES.find(({ projectName }) => projectName === `${team}-0`) as Compute;
          const { all } = deps.rules.current.policies.effectiveFor(compute, NOW_MS);
          const [value] = all.values;
          return [team, all.freeze.length > 0 ? 'frozen' : (value?.size as Size | undefined)?.maxCu];
        }),
      ),
  };
}

describe('files that change while the control API does not answer', () => {
  it('are read and shown, and become current once it answers; in an outage it is not waited for long', async () => {
    const { deps, write, reload, sizes, api } = await aDaemon();
    await startWithRules(deps);
    await reload();
    api.isDown = true;
    await write('policies/a/size.yaml', sized('a', '0.5-2'));
    await write('policies/b/size.yaml', sized('b', '0.25-2').replace('name: size', 'name: other'));
    await reload();
    expect(policyProblems(deps)).toEqual(
      ['a', 'b'].map((team) =>
        expect.stringMatching(
          new RegExp(
            `^policy set \\w+ of ${team} was read; it waits until the projects can be listed, .*; meanwhile the current policies of ${team} stay in effect$`,
          ),
        ),
      ),
    );
    expect(policyProblems(deps, (team) => team === 'b')).toHaveLength(1);
    deps.outages.down('control API', 'no answer');
    // Another edit is shown at once, too.
    await write('policies/a/size.yaml', 'policies: [');
    await reload();
    expect(policyProblems(deps).some((line) => line.startsWith('a: the files as last read are invalid'))).toBe(true);
    await write('policies/a/size.yaml', sized('a', '0.25-2'));
    await reload();
    expect(policyProblems(deps)).toHaveLength(1);
    expect(api.deadlineMs).toBe(5_000);
    deps.outages.up('control API');
    await advanceRules(deps, signal);
    expect(api.deadlineMs).toBeUndefined();
    for (const outage of ['control API for other', 'project list of other']) {
      deps.outages.down(outage, 'no answer');
      await advanceRules(deps, signal);
      expect(api.deadlineMs).toBe(5_000);
      deps.outages.up(outage);
    }
    api.isDown = false;
    await advanceRules(deps, signal);
    expect(sizes()).toMatchObject({ a: 2, b: 2 });
    expect(deps.rules.current.policies.set.policies.map(({ name }) => name)).toContain('b/other');
    expect(policyProblems(deps)).toEqual([]);
  });

  it('are said to wait in the same words everywhere, also at a start', async () => {
    const { deps, api } = await aDaemon({ 'ebb.yaml': settingsOf() });
    api.isDown = true;
    await startWithRules(deps);
    expect(describeSets(deps)).toContain('counting how many computes');
    await advanceRules(deps, signal);
    const [waiting] = policyProblems(deps);
    expect(waiting).toMatch(/ was read; it waits until the projects can be listed, .*; meanwhile nothing is written$/);
    expect(describeSets(deps)).toContain(waiting);
    expect(describeSets(deps)).not.toContain('counting how many computes');
  });

  it('do not wait for it any more once they are approved, though their restarts are announced first', async () => {
    const { deps, write, reload, api } = await aDaemon();
    await startWithRules(deps);
    await reload();
    api.isDown = true;
    await write('policies/a/size.yaml', sized('a', '4-8'));
    await reload();
    expect(policyProblems(deps)).toHaveLength(1);
    deps.rules.current = { ...deps.rules.current, notify: { receivers: [{ name: 'ops' }] } as never };
    const hash = stateOf(deps.sets, 'a').candidate?.rules.policies.hash ?? '';
    await deps.store.approve({ hash, who: 'ann', atMs: NOW_MS });
    const announced = {
      computeIds: ['ep-a-0'],
      isOfApproval: true,
      toMs: NOW_MS + 5_000,
      untilMs: NOW_MS + 5_000,
    } as const;
    await SENT_DIGESTS.put(deps.store, digestKey('ops', 'a', NOW_MS), announced);
    await advanceRules(deps, signal);
    expect(stateOf(deps.sets, 'a').candidate).toBeDefined();
    expect(policyProblems(deps)).toEqual([]);
  });
});

describe('a team whose files are broken', () => {
  it('keeps its last good version and is told so, while the other five reload as if nothing were wrong', async () => {
    const { deps, write, reload, sizes, gauge, log } = await aDaemon();
    await startWithRules(deps);
    await reload();
    await write('policies/a/size.yaml', sized('a', '4-8').replace('kind', 'knd'));
    for (const team of TEAMS.slice(1)) {
      await write(`policies/${team}/size.yaml`, sized(team, '0.25-2').replace('size: 0.25-2', 'suspend_after: 10m'));
    }
    await reload();
    expect(stagedSets(deps)).toEqual([]);
    const timeouts = deps.rules.current.policies.set.policies.flatMap((one) =>
      one.kind === 'schedule' ? [[one.team, one.windows[0]?.suspendTimeoutSeconds]] : [],
    );
    expect(timeouts).toEqual(TEAMS.map((team) => [team, team === 'a' ? undefined : 600]));
    expect(sizes()).toMatchObject({ a: 2 });
    expect(policyProblems(deps)).toEqual([
      expect.stringMatching(
        /^a: the files as last read are invalid: .*policies\/a\/size\.yaml:3:\d+: unknown key "knd"/,
      ),
    ]);
    expect(policyProblems(deps, (team) => team === 'b')).toEqual([]);
    const refused = log.lines.filter(({ fields }) => Reflect.get(fields, 'event') === 'ebb.policies_refused');
    expect(refused.map(({ fields }) => Reflect.get(fields, 'owner'))).toEqual(['a']);
    expect([gauge('ebb_team_policy_load_success', 'a'), gauge('ebb_team_policy_load_success', 'b')]).toEqual([0, 1]);
    await write('policies/a/size.yaml', sized('a', '0.25-2'));
    await reload();
    expect(policyProblems(deps)).toEqual([]);
    expect(gauge('ebb_policy_load_success')).toBe(1);
  });

  it.each([
    ['is gone', (folder: string) => rm(join(folder, 'policies/a'), { recursive: true })],
    ['is empty', (folder: string) => rm(join(folder, 'policies/a/size.yaml'))],
    [
      'has only a link to a file of another',
      async (folder: string) => {
        await rm(join(folder, 'policies/a/size.yaml'));
        await symlink('../b/size.yaml', join(folder, 'policies/a/size.yaml'));
      },
    ],
  ])(
    'keeps its last good version while its folder %s, and the others and the files of no team go on',
    async (_title, change) => {
      const { deps, folder, write, reload, sizes } = await aDaemon();
      await startWithRules(deps);
      await reload();
      await change(folder);
      await write('policies/b/size.yaml', sized('b', '0.25-2').replace('name: size', 'name: other'));
      await write('policies/common.yaml', COMMON.replace('stop', 'halt'));
      await reload();
      expect(sizes()).toEqual({ a: 2, b: 2, c: 2, d: 2, e: 2, f: 2 });
      const names = deps.rules.current.policies.set.policies.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['a/size', 'b/other', 'halt']));
      expect(policyProblems(deps)[0]).toMatch(/^a: the files as last read are invalid: .*policies\/a/);
    },
  );

  it('stops no start without a folder: its computes are left alone', async () => {
    const settings = SETTINGS.replace('policies/a/**", projects', 'policies/z/**", projects').replace(
      '"policies/a/**"',
      '"policies/z/**"',
    );
    const { deps, reload, sizes } = await aDaemon({ 'ebb.yaml': settings });
    await startWithRules(deps);
    await reload();
    expect(sizes()).toEqual({ a: 'frozen', b: 2, c: 2, d: 2, e: 2, f: 2 });
  });

  it('stops no start: its computes are left alone until the files can be read', async () => {
    const { deps, write, reload, sizes, gauge } = await aDaemon({ 'policies/a/size.yaml': 'policies: [' });
    await startWithRules(deps);
    // As in its first round.
    await reload({ isRequested: false });
    expect(sizes()).toEqual({ a: 'frozen', b: 2, c: 2, d: 2, e: 2, f: 2 });
    expect(policyProblems(deps)[0]).toMatch(/^a: the files as last read are invalid: .*policies\/a/);
    expect(gauge('ebb_policy_load_success')).toBe(0);
    expect(gauge('ebb_team_policy_load_success', 'a')).toBe(0);
    expect(deps.sets.generation).toBeDefined();
    await write('policies/a/size.yaml', sized('a', '0.25-2'));
    await reload();
    expect(sizes()).toMatchObject({ a: 2 });
  });

  it('is held to a scope that has become smaller, also where an older version counts', async () => {
    const { deps, write, reload, sizes } = await aDaemon();
    await startWithRules(deps);
    await reload();
    await write('ebb.yaml', SETTINGS.replace('["a-*"]', '["a-1"]'));
    await reload();
    expect(policyProblems(deps)).toEqual([expect.stringContaining('"a-*" reaches beyond the projects a-1')]);
    expect(sizes()).toEqual({ a: undefined, b: 2, c: 2, d: 2, e: 2, f: 2 });
  });

  it('is held to a smaller scope also where the store is away when that is read', async () => {
    const { deps, write, reload, sizes } = await aDaemon();
    await startWithRules(deps);
    await reload();
    const { raiseGeneration } = deps.store;
    const away = () => Promise.reject(new Error('the store is away'));
    Object.assign(deps.store, { raiseGeneration: away });
    await write('ebb.yaml', SETTINGS.replace('["a-*"]', '["a-1"]'));
    await expect(reload()).rejects.toThrow('the store is away');
    await expect(takeDelayed(deps, signal)).rejects.toThrow('the store is away');
    expect(sizes()).toMatchObject({ a: 2 });
    Object.assign(deps.store, { raiseGeneration });
    await takeDelayed(deps, signal);
    expect(sizes()).toMatchObject({ a: undefined, b: 2 });
    expect(policyProblems(deps)).toEqual([expect.stringContaining('"a-*" reaches beyond the projects a-1')]);
  });
});

describe('files that are changed in place', () => {
  it('wait for 10 s of rest, whatever is in them; what is replaced as a whole counts at once', async () => {
    const { deps, clock, folder, write, reload, sizes } = await aDaemon();
    await startWithRules(deps);
    await reload();
    await write('policies/a/size.yaml', sized('a', '0.25-1'));
    await write('ebb.yaml', SETTINGS.replace('["b-*"]', '["b-1"]'));
    await reload({ isRequested: false });
    expect(sizes()).toMatchObject({ a: 2, b: 2 });
    expect(policyProblems(deps)[0]).toMatch(/^files were changed in place: .* 10 s/);
    await clock.runTo(NOW_MS + 9_999);
    await takeDelayed(deps, signal);
    expect(sizes()).toMatchObject({ a: 2, b: 2 });
    await clock.runTo(NOW_MS + 10_000);
    await takeDelayed(deps, signal);
    expect(sizes()).toMatchObject({ a: 2, b: undefined });
    await replaceFile(join(folder, 'ebb.yaml'), SETTINGS);
    await reload({ isRequested: false });
    expect(sizes()).toMatchObject({ b: 2 });
  });
});

it('a scope that changes together with policies supersedes no daemon that has loaded both already', async () => {
  const [first, second] = [await aDaemon(), await aDaemon()];
  const { store } = first.deps;
  second.deps.store = store;
  for (const { deps, write, reload } of [first, second]) {
    await startWithRules(deps);
    await reload();
    await write('ebb.yaml', SETTINGS.replace('["a-*"]', '["a-*", "x-*"]'));
    await write('policies/a/size.yaml', sized('a', '0.25-2').replace('name: size', 'name: other'));
  }
  await first.reload();
  const registered = await store.generation();
  expect(registered?.setHash).toBe(first.deps.rules.current.policies.set.hash);
  await second.reload();
  expect(await store.generation()).toEqual(registered);
  expect(second.deps.sets.generation).toBe(registered?.number);
});

it('a scope that changes together with policies supersedes no daemon that loads both at that moment', async () => {
  const [first, second] = [await aDaemon(), await aDaemon()];
  const { store } = first.deps;
  second.deps.store = store;
  for (const { deps, write, reload } of [first, second]) {
    await startWithRules(deps);
    await reload();
    await write('ebb.yaml', SETTINGS.replace('["a-*"]', '["a-*", "x-*"]'));
    await write('policies/a/size.yaml', sized('a', '0.25-2').replace('name: size', 'name: other'));
  }
  let isMet = false;
  const current: (string | undefined)[] = [];
  const raiseGeneration: typeof store.raiseGeneration = async (...own) => {
    if (!isMet) {
      isMet = true;
      await second.reload();
    }
    const raised = await store.raiseGeneration(...own);
    current.push((await store.generation())?.setHash);
    return raised;
  };
  first.deps.store = { ...store, raiseGeneration };
  await first.reload();
  const { hash } = second.deps.rules.current.policies.set;
  expect(isMet).toBe(true);
  expect([...new Set(current)]).toEqual([hash]);
  expect(first.deps.rules.current.policies.set.hash).toBe(hash);
});

describe('a change that would disconnect many computes of a team', () => {
  it('is staged although a guard, which nobody has asked yet, may hold it back', async () => {
    const { deps, write, reload } = await aDaemon();
    await startWithRules(deps);
    await reload();
    const source = 'sources: { main: { from: prometheus, url: "http://127.0.0.1:9" } }\n';
    const guard =
      '  - { name: latency, kind: guard, select: { projects: ["a-*"] }, source: main, query: p95, match: { a: b }, bad_when: "> 1" }\n';
    await write('policies/a/size.yaml', `${source}${sized('a', '0.25-1')}${guard}`);
    await reload();
    expect(stagedSets(deps)).toMatchObject([{ team: 'a', impact: { disconnected: 10, computes: 10 } }]);
  });

  it('is staged for that team alone, by its own number of computes, and approved by its own hash', async () => {
    const { deps, write, reload, sizes, gauge } = await aDaemon();
    await startWithRules(deps);
    await reload();
    await write('policies/a/size.yaml', sized('a', '4-8'));
    await write('policies/b/size.yaml', sized('b', '0.25-2').replace('name: size', 'name: other'));
    await reload();
    const [staged, ...others] = stagedSets(deps);
    expect(others).toEqual([]);
    expect(staged).toMatchObject({ team: 'a', impact: { disconnected: 10, computes: 10 } });
    expect(describeSets(deps)).toContain('of a would disconnect 10 of 10 computes at once: it is staged');
    expect([
      gauge('ebb_staged_changes'),
      gauge('ebb_team_staged_changes', 'a'),
      gauge('ebb_team_staged_changes', 'b'),
    ]).toEqual([10, 10, 0]);
    expect(sizes()).toMatchObject({ a: 2, b: 2 });
    expect(deps.rules.current.policies.set.policies.map(({ name }) => name)).toContain('b/other');
    await deps.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: NOW_MS });
    await advanceRules(deps, signal);
    expect(sizes()).toMatchObject({ a: 8, b: 2 });
    expect(stagedSets(deps)).toEqual([]);
  });

  it('names who has approved what became current with it, also by a daemon that follows another, or starts later', async () => {
    const [first, second] = [await aDaemon(), await aDaemon()];
    second.deps.store = first.deps.store;
    for (const { deps, write, reload } of [first, second]) {
      await startWithRules(deps);
      await reload();
      await write('policies/a/size.yaml', sized('a', '4-8'));
      await reload();
    }
    const [staged] = stagedSets(first.deps);
    await first.deps.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: NOW_MS });
    for (const { deps } of [first, second]) {
      expect(deps.rules.current.becameCurrent?.[0]?.approver?.who).toBeUndefined();
      await advanceRules(deps, signal);
      expect(deps.rules.current.becameCurrent?.[0]?.approver?.who).toBe('ann');
    }
    const restarted = await aDaemon({ 'policies/a/size.yaml': sized('a', '4-8') });
    restarted.deps.store = first.deps.store;
    await startWithRules(restarted.deps);
    expect(restarted.deps.rules.current.becameCurrent).toEqual([
      {
        ...{ hash: first.deps.rules.current.policies.set.hash, currentSinceMs: NOW_MS },
        approver: { who: 'ann', atMs: [NOW_MS] },
      },
    ]);
    await first.write('policies/b/size.yaml', sized('b', '0.25-2').replace('name: size', 'name: other'));
    await first.reload();
    expect(first.deps.rules.current.becameCurrent?.[0]?.approver?.who).toBeUndefined();
  });

  it('stops nobody else at a start either', async () => {
    const { deps, reload, sizes } = await aDaemon({ 'policies/a/size.yaml': sized('a', '4-8') });
    await startWithRules(deps);
    expect(deps.sets.generation).toBeUndefined();
    await reload();
    expect(deps.sets.generation).toBeDefined();
    expect(sizes()).toEqual({ a: 'frozen', b: 2, c: 2, d: 2, e: 2, f: 2 });
    expect(stagedSets(deps)).toMatchObject([
      { team: 'a', message: expect.stringContaining('it is staged, and nothing is written to computes of a; to make') },
    ]);
  });

  it('is counted by the scope that comes with it, also where the team is new and the files of no team change too', async () => {
    const { deps, write, reload, sizes } = await aDaemon({ 'ebb.yaml': settingsOf('b') });
    await startWithRules(deps);
    await reload();
    await write('ebb.yaml', settingsOf('a', 'b'));
    await write('policies/a/size.yaml', sized('a', '4-8'));
    await write('policies/common.yaml', COMMON.replace('stop', 'halt'));
    await reload();
    expect(stagedSets(deps)).toMatchObject([{ team: 'a', impact: { disconnected: 10, computes: 10 } }]);
    expect(sizes()).toMatchObject({ a: undefined, b: 2 });
  });

  it('waits no more where the scope has become smaller, so that no approval reaches beyond it', async () => {
    const { deps, write, reload, sizes } = await aDaemon();
    await startWithRules(deps);
    await reload();
    await write('policies/a/size.yaml', sized('a', '4-8'));
    await reload();
    const [staged] = stagedSets(deps);
    expect(staged?.team).toBe('a');
    await write('ebb.yaml', SETTINGS.replace('["a-*"]', '["a-1"]'));
    await reload();
    await deps.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: NOW_MS });
    await advanceRules(deps, signal);
    expect(stagedSets(deps)).toEqual([]);
    expect(sizes()).toMatchObject({ a: undefined, b: 2 });
  });

  it('is approved for one team only, where two have emptied their files', async () => {
    const files = TEAMS.map((team) => [`policies/${team}/size.yaml`, sized(team, '0.25-2', 'priority: 1')]);
    const { deps, write, reload, sizes } = await aDaemon({
      ...Object.fromEntries(files),
      'policies/common.yaml': sized('?', '4-8'),
    });
    await startWithRules(deps);
    await reload();
    expect(sizes()).toMatchObject({ a: 2, b: 2 });
    for (const team of ['a', 'b']) await write(`policies/${team}/size.yaml`, 'version: 1\npolicies: []\n');
    await reload();
    const [staged, ...others] = stagedSets(deps);
    expect([staged?.team, ...others.map(({ team }) => team)]).toEqual(['a', 'b']);
    await deps.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: NOW_MS });
    await advanceRules(deps, signal);
    expect(sizes()).toMatchObject({ a: 8, b: 2 });
    expect(stagedSets(deps).map(({ team }) => team)).toEqual(['b']);
  });
});

describe('a set that is staged at a start', () => {
  const staged = sized('?', '4-8');
  const ofTeam = { 'policies/b/size.yaml': sized('b', '0.25-2', 'priority: 1') };

  it.each([
    ['with a team', settingsOf('b'), 50],
    ['without teams', settingsOf(), 60],
  ])('still waits for approval where its files are edited and restored, %s', async (_title, settings, disconnected) => {
    const { deps, write, reload, sizes } = await aDaemon({
      ...ofTeam,
      'ebb.yaml': settings,
      'policies/common.yaml': staged,
    });
    await startWithRules(deps);
    await reload();
    const [first] = stagedSets(deps);
    expect(first).toMatchObject({ team: '', impact: { disconnected, computes: 60 } });
    await write('policies/common.yaml', sized('?', '2-4'));
    await reload();
    expect(stagedSets(deps)).not.toMatchObject([{ hash: first?.hash }]);
    await write('policies/common.yaml', staged);
    await reload();
    expect(stagedSets(deps)).toEqual([first]);
    expect(deps.sets.generation).toBeUndefined();
    await deps.store.approve({ hash: first?.hash ?? '', who: 'ann', atMs: NOW_MS });
    await advanceRules(deps, signal);
    expect(deps.sets.generation).toBeDefined();
    expect(sizes()).toMatchObject({ a: 8 });
  });

  it('is not enforced for the part of a team that passes while the other files are broken', async () => {
    const { deps, write, reload } = await aDaemon({
      ...ofTeam,
      'ebb.yaml': settingsOf('b'),
      'policies/common.yaml': `${staged}${COMMON.split('\n')[2]}\n`,
    });
    await startWithRules(deps);
    await reload();
    expect(stagedSets(deps)).toHaveLength(1);
    await write('policies/common.yaml', sized('?', '2-4'));
    await reload({ isRequested: false });
    await write('policies/common.yaml', 'policies: [');
    await reload({ isRequested: false });
    await advanceRules(deps, signal);
    expect(deps.sets.generation).toBeUndefined();
    await write('policies/common.yaml', sized('c', '0.25-2'));
    await reload();
    expect(deps.sets.generation).toBeDefined();
  });
});
