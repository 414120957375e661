import { describe, expect, it } from 'vitest';
import { isBranchAsDecided, type RecheckDeps } from '../../src/app/apply/rechecks.ts';
import { readProject } from '../../src/app/fleet/cached-projects.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { readComputes } from '../../src/app/fleet/read-computes.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Branch, ControlApi, ControlApiError, Project } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, at, currentRules } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { aSelector } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const HOUR_MS = 3_600_000;
const project: Project = { account: 'a', projectId: 'p-one', name: 'shop', regionId: 'r', updatedAtMs: 1 };
const MAIN: Branch = { branchId: 'br-one', name: 'main', isDefault: true, isProtected: false };
const refusal = (code: ControlApiError['code']) => ({ code, route: 'GET branches', message: code });

/** A daemon that selects by branch, and what its control API says of one project; computes are awake, with 8 CU. */
function aDaemon() {
  const platform = {
    branches: [MAIN] as Branch[] | ControlApiError,
    computes: [aCompute({ minCu: 8, maxCu: 8 })],
    unreadable: [] as { computeId?: string; message: string }[],
    listed: 0,
  };
  const api: Pick<ControlApi, 'listComputes' | 'listBranches'> = {
    listComputes: async () => ({ ok: true, value: { computes: platform.computes, unreadable: platform.unreadable } }),
    async *listBranches() {
      platform.listed += 1;
      const { branches } = platform;
      yield Array.isArray(branches) ? { ok: true, value: branches } : { ok: false, error: branches };
    },
  };
  const time = { ms: 0 };
  const clock = { now: () => NOON + time.ms, monotonicMs: () => time.ms };
  const log = memoryLog();
  const asked: string[] = [];
  const small = aSchedule({
    select: aSelector({ branches: ['*', '!main'] }),
    disruption: { lower: { when: 'any', atDeadline: 'skip' } },
    windows: [{ at: [{ kind: 'always' }], size: { minCu: 0.25, maxCu: 0.25 } }],
  });
  const rules = currentRules(small);
  const { policies } = rules.current;
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const telemetry = { log, metrics };
  const context = {
    ...{
      api,
      clock,
      rules,
      telemetry,
      outages: createOutages(telemetry, clock),
      fleet: createFleet({ clock } as never),
    },
    queue: {
      add: async (queue: string) => void asked.push(queue),
      addAt: async (queue: string) => void asked.push(queue),
    },
  } as unknown as RecheckDeps;
  return { platform, time, log, asked, policies, context };
}

describe('computes of a project, where only owners follow from names of branches', () => {
  it('have these names, and are read without them where branches are unavailable', async () => {
    const { platform, context } = aDaemon();
    const { current } = currentRules();
    context.rules.current = { ...current, costs: { ...current.costs, owners: [['*/main', 'team-main']] } };
    const names = async () => {
      const read = await readComputes(context, { ...project, updatedAtMs: platform.listed }, {});
      return read.ok && read.value.computes.map(({ branchName }) => branchName);
    };
    expect(await names()).toEqual(['main']);
    platform.branches = refusal('unavailable');
    expect(await names()).toEqual([undefined]);
  });
});

describe('computes of a project, where policies select by branch', () => {
  it.each(['unavailable', 'timeout', 'throttled'] as const)('cannot be read while branches are %s', async (code) => {
    const { platform, context } = aDaemon();
    platform.branches = refusal(code);
    expect(await readComputes(context, project, {})).toMatchObject({ ok: false, error: { code } });
  });

  it.each([
    ['refused', refusal('forbidden')],
    ['not found', refusal('not_found')],
    ['listed without theirs', [{ ...MAIN, branchId: 'br-other' }]],
    ['none at all', []],
  ])('have a branch of which nothing is known where branches are %s', async (_, branches) => {
    const { platform, context, policies } = aDaemon();
    platform.branches = branches;
    const read = await readComputes(context, project, {});
    if (!read.ok) throw new Error(read.error.message);
    const [compute] = read.value.computes;
    expect(compute).not.toHaveProperty('branchName');
    expect(compute && policies.selecting(compute)).toEqual([]);
  });

  it('have the names that branches have since the project last changed, and for an hour', async () => {
    const { platform, context, time } = aDaemon();
    const nameFor = async (of: Project) => {
      const read = await readComputes(context, of, {});
      return read.ok && read.value.computes[0]?.branchName;
    };
    expect(await nameFor(project)).toBe('main');
    platform.branches = [{ ...MAIN, name: 'develop' }];
    expect([await nameFor(project), platform.listed]).toEqual(['main', 1]);
    expect([await nameFor({ ...project, updatedAtMs: 2 }), platform.listed]).toEqual(['develop', 2]);
    platform.branches = [MAIN];
    time.ms += HOUR_MS;
    expect(await nameFor({ ...project, updatedAtMs: 2 })).toBe('main');
  });

  it('are unknown for a minute after one refusal, and for an hour once it was repeated', async () => {
    const { platform, context, time } = aDaemon();
    const nameNow = async () => {
      const read = await readComputes(context, project, {});
      return read.ok && read.value.computes[0]?.branchName;
    };
    platform.branches = refusal('forbidden');
    expect([await nameNow(), platform.listed]).toEqual([undefined, 1]);
    time.ms += 59_999;
    platform.branches = [MAIN];
    expect([await nameNow(), platform.listed]).toEqual([undefined, 1]);
    time.ms += 1;
    expect([await nameNow(), platform.listed]).toEqual(['main', 2]);
    time.ms += HOUR_MS;
    platform.branches = refusal('forbidden');
    expect(await nameNow()).toBeUndefined();
    time.ms += 60_000;
    expect([await nameNow(), platform.listed]).toEqual([undefined, 4]);
    time.ms += HOUR_MS - 1;
    platform.branches = [MAIN];
    expect([await nameNow(), platform.listed]).toEqual([undefined, 4]);
    time.ms += 1;
    expect([await nameNow(), platform.listed]).toEqual(['main', 5]);
  });
});

describe('before clients are disconnected, the branch', () => {
  async function decided() {
    const daemon = aDaemon();
    const { platform, context, policies } = daemon;
    platform.branches = [{ ...MAIN, name: 'develop' }];
    const cachedProject = await readProject(context, project, {});
    const [compute] = cachedProject?.computes ?? [];
    if (!cachedProject || !compute) throw new Error('not read');
    const record = aRecord({ lastApplied: {} });
    const judged = evaluate({ policies, compute, record, nowMs: NOON, mode: 'enforce', projectBusy: false });
    expect(judged.plan.actions).toMatchObject([{ disconnects: true }]);
    const ask = () =>
      isBranchAsDecided(context, cachedProject, { compute, record, ...judged }, new AbortController().signal);
    return { ...daemon, ask };
  }

  it('is read again unless that was a moment ago, and evaluated again if it has changed', async () => {
    const { ask, platform, time, asked, context, policies } = await decided();
    expect([await ask(), platform.listed]).toEqual([true, 1]);
    time.ms += 10_000;
    expect([await ask(), platform.listed]).toEqual([true, 2]);
    platform.branches = [MAIN];
    time.ms += 10_000;
    expect([await ask(), asked]).toEqual([false, ['reconcile']]);
    const [compute] = context.fleet.cachedProject('p-one')?.computes ?? [];
    expect(compute && policies.selecting(compute)).toEqual([]);
  });

  it('holds the change back while it cannot be read, which is said once, though the computes can be', async () => {
    const { ask, platform, time, asked, log, context } = await decided();
    platform.branches = refusal('malformed');
    for (let round = 1; round <= 3; round += 1) {
      time.ms += 10_000;
      expect([await ask(), asked.length]).toEqual([false, round]);
      await readProject(context, project, {});
    }
    expect(log.lines.map(({ message }) => message)).toMatchObject([expect.stringContaining("p-one can't be managed")]);
    platform.branches = [{ ...MAIN, name: 'develop' }];
    time.ms += 60_000;
    expect(await ask()).toBe(true);
    expect(log.lines.at(-1)?.message).toBe('p-one can be managed again');
  });
});

it('a compute that is not understood is named once, and is neither an outage nor in the way of the others', async () => {
  const { platform, context, log } = aDaemon();
  platform.unreadable = [{ computeId: 'ep-new', message: 'current_state: invalid_value' }];
  for (let again = 0; again < 3; again += 1) {
    const cachedProject = await readProject(context, project, {});
    expect(cachedProject?.computes.map(({ computeId }) => computeId)).toEqual(['ep-one']);
  }
  platform.unreadable = [];
  await readProject(context, project, {});
  expect(log.lines.map(({ level, fields }) => [level, fields])).toEqual([
    ['warn', { event: 'ebb.compute_unreadable', project: 'p-one', compute: 'ep-new' }],
    ['info', { event: 'ebb.compute_readable', project: 'p-one', compute: 'ep-new' }],
  ]);
});

it('what was read before an answer that makes no sense is not written by, until the project is read again', async () => {
  const { context } = aDaemon();
  await readProject(context, project, {});
  expect(context.fleet.isFresh('p-one')).toBe(true);
  const { listComputes } = context.api;
  context.api.listComputes = async () => ({ ok: false, error: refusal('malformed') });
  await readProject(context, project, {});
  expect(context.fleet.isFresh('p-one')).toBe(false);
  context.api.listComputes = listComputes;
  await readProject(context, project, {});
  expect(context.fleet.isFresh('p-one')).toBe(true);
});

it('answers about projects that are not understood are no outage of the control API, however many', async () => {
  const { context, log } = aDaemon();
  context.api.listComputes = async () => ({ ok: false, error: refusal('malformed') });
  const projects = ['p-one', 'p-two', 'p-three'].map((projectId) => ({ ...project, projectId }));
  for (const one of [...projects, ...projects]) expect(await readProject(context, one, {})).toBeUndefined();
  const refused = projects.map(({ projectId }) => ({ event: 'ebb.project_refused', project: projectId }));
  expect(log.lines.map(({ fields }) => fields)).toEqual(refused);
});
