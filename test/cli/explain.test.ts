import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createColors } from 'picocolors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeExplanation, explanationJson } from '../../src/cli/explain/describe-explanation.ts';
import { findCompute } from '../../src/cli/explain/run-explain.ts';
import type { AccountFacts } from '../../src/domain/compute/account-facts.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { type EvaluatedCompute, evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import { aCompute, aRecord, aSchedule, at, compiled } from '../support/builders.ts';
import { startEbb } from '../support/ebb-process.ts';
import { aSelector } from '../support/selectors.ts';
import { FLEET, MONDAY_NINE, POLICIES } from './fleet-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-explain-'));

beforeAll(() => {
  writeFileSync(join(folder, 'policy.yaml'), POLICIES);
  writeFileSync(join(folder, 'fleet.json'), FLEET);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function explain(...args: string[]) {
  const all = ['explain', '--fleet', 'fleet.json', '--at', MONDAY_NINE, '--policies', 'policy.yaml', ...args];
  const run = startEbb(all, { cwd: folder });
  const status = await run.ended;
  return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
}

describe('the compute that is named', () => {
  const planned = (computeId: string, projectName: string) =>
    ({ compute: aCompute({ computeId, projectId: `p-${projectName}`, projectName }) }) as EvaluatedCompute;
  const fleet = [planned('ep-a', 'web-shop'), planned('ep-b', 'web-shop'), planned('ep-c', 'web-blog')];
  const found = (name: string) => findCompute(fleet, name).compute.computeId;

  it('may be the only one of a project; of several there is a choice', () => {
    expect(['ep-a', 'web-shop/ep-b', 'web-blog', 'p-web-blog'].map(found)).toEqual(['ep-a', 'ep-b', 'ep-c', 'ep-c']);
    expect(() => found('web-shop')).toThrow('web-shop has 2 computes, name one: ep-a, ep-b');
    expect(() => found('web-shp')).toThrow('there is no compute web-shp; the nearest of 3');
  });

  it('may be of a project that cannot be read: that is said with the reason, not that there is none', () => {
    const unread = [{ projectId: 'p-21', name: 'web-021', problem: '403: project is suspended' }];
    const saidOf = (name: string) => () => findCompute(fleet, name, unread);
    const reason = "can't be read now: 403: project is suspended";
    for (const name of ['p-21', 'web-021']) expect(saidOf(name)).toThrow(`${name} ${reason}`);
    expect(saidOf('web-021/ep-x')).toThrow(`web-021 ${reason}`);
    const elsewhere = 'it may be in web-021, not read now: 403: project is suspended';
    expect(saidOf('ep-x')).toThrow(
      /^there is no compute ep-x in what can be read; the nearest of \d+: ep-a, .*; it may/,
    );
    expect(saidOf('ep-x')).toThrow(elsewhere);
    expect(findCompute(fleet, 'ep-a', unread).compute.computeId).toBe('ep-a');
  });
});

describe('ebb explain', () => {
  it('shows every step, the gate, and what comes at the next boundary', async () => {
    const { status, stdout, stderr } = await explain('ep-busy');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const window = 'window 1 of office-hours, priority 100, open since 2026-03-02T08:00:00Z';
    expect(stdout).toBe(`web-shop / ep-busy at 2026-03-02T09:00:00Z
  state     active, read_write, branch br-busy
  has       size 0.25-1 CU, suspend_after 5m
  wanted    size 1-4 CU, suspend_after never
  baseline  size 0.25-1 CU, suspend_after 5m

Size
  * ${window}: 1-4 CU [window_open]
  - otherwise of office-hours, priority 100 [outranked]

Scale to zero
  * ${window}: never [window_open]
  - otherwise of office-hours, priority 100 [outranked]

To change now
  suspend_after 5m → never: ${window} [window_open]
  size 0.25-1 → 1-4 CU: ${window} [window_open]
  waits: ebb has just discovered this active compute: waiting for sleep or for the next boundary [newly_discovered]
  assumed: a new timeout alone disconnects nobody (timeout_change)

Next boundary 2026-03-02T18:00:00Z: size 0.25-1 CU, suspend_after 5m`);
  });

  it('finds a compute by PROJECT/COMPUTE and prints the same as JSON', async () => {
    const { stdout } = await explain('web-shop/ep-right', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ at: MONDAY_NINE, compute_id: 'ep-right', verdict: 'none', actions: [] },
      baseline: { min_cu: 1, max_cu: 4, suspend_timeout_seconds: -1 },
      next_boundary: { at: '2026-03-02T18:00:00Z', desired: { max_cu: 1, suspend_timeout_seconds: 300 } },
    });
  });

  it('names the nearest ids for a compute that is not there', async () => {
    expect(await explain('ep-bussy')).toEqual({
      status: 1,
      stdout: '',
      stderr: 'ebb: there is no compute ep-bussy; the nearest of 4: ep-busy, ep-other, ep-right',
    });
    // Only the project that is named is read.
    expect((await explain('other/ep-busy')).stderr).toBe(
      'ebb: there is no compute other/ep-busy; the nearest of 1: ep-other',
    );
  });
});

describe('the explanation of a compute that people keep as it is', () => {
  it('names the freeze also if nothing is to change now, and says when the next change is made', () => {
    const nowMs = at('2026-03-02T17:00:00Z');
    const compute = aCompute({ minCu: 1, maxCu: 4 });
    const person = { owner: 'ann', reason: 'incident', createdAtMs: nowMs, expiresAtMs: at('2026-03-02T18:21:00Z') };
    const situation = {
      ...({ policies: compiled(aSchedule()), compute, mode: 'enforce', projectBusy: false, nowMs } as const),
      ...{ record: aRecord({ baseline: compute, lastApplied: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 } }) },
      freezes: [{ ...person, id: 'f', select: 'all' as const, allowRaise: false }],
    };
    const { policies, record, freezes } = situation;
    const planned = { compute, record, ...evaluate(situation) };
    const later = (iso: string) => decide({ policies, compute, baseline: compute, instantMs: at(iso) });
    const decisions = { next: later('2026-03-02T18:00:00Z'), change: later('2026-03-02T18:21:00Z') };
    const explanation = { atMs: nowMs, planned, freezes, ...decisions };
    const text = describeExplanation(explanation, createColors(false));
    expect(text).toContain('\n  frozen    by ann until 2026-03-02T18:21:00Z: incident\n');
    expect(text).toContain('\nNothing to change\n');
    const wanted = 'size 0.25-1 CU, suspend_after 5m';
    expect(text.split('\n').slice(-2)).toEqual([
      `Next boundary 2026-03-02T18:00:00Z: ${wanted}; kept as it is then`,
      `Next change 2026-03-02T18:21:00Z: ${wanted}`,
    ]);
    expect(explanationJson(explanation)).toMatchObject({
      next_boundary: { at: '2026-03-02T18:00:00Z' },
      next_change: { at: '2026-03-02T18:21:00Z' },
      kept_by: [
        { kind: 'freeze', owner: 'ann', reason: 'incident', until: '2026-03-02T18:21:00Z', allow_raise: false },
      ],
    });
  });
});

describe('an explanation', () => {
  const limits: LimitsPolicy = {
    ...{ kind: 'limits', name: 'ceiling', file: 'f', mode: 'enforce', priority: 0, select: aSelector({}) },
    ...{ size: { maxCu: 2 }, hard: false },
  };

  function explanationOf(set: Parameters<typeof compiled>, compute: Partial<Compute> = {}) {
    const { computes, atMs } = planFleet({
      ...{
        policies: compiled(...set),
        computes: [aCompute(compute)],
        records: new Map(),
        mode: 'enforce',
        nowMs: at(MONDAY_NINE),
      },
      ...{ profiles: new Map(), disruption: undefined, manualChanges: undefined },
    });
    const [planned] = computes;
    if (!planned) throw new Error('nothing was planned');
    return { atMs, planned };
  }

  it('shows winners, losers, clamps and who only observes', () => {
    const watching = aSchedule({ name: 'watching', mode: 'observe', priority: -1 });
    const explanation = explanationOf([aSchedule(), watching, limits]);
    const text = describeExplanation(explanation, createColors(false));
    expect(text).toContain(
      '\n  * window 1 of office-hours, priority 0, open since 2026-03-02T08:00:00Z: 1-4 CU [window_open]',
    );
    expect(text).toContain(
      '\n  - window 1 of watching, priority -1, open since 2026-03-02T08:00:00Z, only observes [outranked]',
    );
    expect(text).toContain('\n  * limits ceiling (1-4 CU → 1-2 CU) [limited]');
    expect(text).toContain('\nNext boundary none in sight');
    expect(explanationJson(explanation)).toMatchObject({
      trace: expect.arrayContaining([
        {
          ...{ group: 'size', code: 'limited', policy: 'ceiling', mode: 'enforce' },
          ...{ before: { min_cu: 1, max_cu: 4 }, after: { min_cu: 1, max_cu: 2 } },
          message: 'limits ceiling (1-4 CU → 1-2 CU)',
        },
      ]),
      next_boundary: null,
    });
  });

  it('says since when the baseline is what somebody else has set, and what it was', () => {
    const { planned, atMs } = explanationOf([limits], { minCu: 2, maxCu: 8 });
    const change = { seenAtMs: at('2026-03-02T08:30:00Z'), before: { minCu: 1, maxCu: 2 } };
    const record = { ...planned.record, baselineChanges: { size: change } };
    const explanation = { atMs, planned: { ...planned, record } };
    const text = describeExplanation(explanation, createColors(false));
    expect(text).toContain(
      '\n  baseline  size was 1-2 CU until somebody else changed it, first seen at 2026-03-02T08:30:00Z\n',
    );
    expect(explanationJson(explanation)).toMatchObject({
      baseline_changes: [{ group: 'size', seen_at: '2026-03-02T08:30:00Z', before: { min_cu: 1, max_cu: 2 } }],
    });
    expect(describeExplanation({ atMs, planned }, createColors(false)).match(/^ {2}baseline /gm)).toHaveLength(1);
  });

  it('says that a trial leaves the compute out, and why', () => {
    const { planned, atMs } = explanationOf([limits]);
    const stored = { slot: 0, flipDelayMs: 0, terms: 't', sinceMs: at('2026-03-10T09:00:00Z') };
    const trials = { proof: { ...stored, baseline: null }, other: { ...stored, baseline: planned.record.baseline } };
    const text = describeExplanation(
      { atMs, planned: { ...planned, record: { ...planned.record, trials } } },
      createColors(false),
    );
    expect(text.match(/^ {2}trial .*/gm)).toEqual([
      '  trial     proof leaves it out: ebb first had it in the trial at 2026-03-10T09:00:00Z, after the start: its settings before are unknown, so it is never counted',
    ]);
  });

  it('says whether what it promises of a change was measured', () => {
    const of = (compute: Partial<Compute>, verified: AccountFacts = {}) => {
      const explanation = { ...explanationOf([aSchedule()], compute), verified };
      const text = describeExplanation(explanation, createColors(false));
      const lines = text.split('\n').filter((line) => /^ {2}(verified|assumed)/.test(line));
      return [lines, (explanationJson(explanation) as { rests_on?: object[] }).rests_on];
    };
    const asleep = { state: 'idle', minCu: 0.25, maxCu: 0.25 } as const;
    const awake = { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 600 };
    const assumed = ['  assumed: a new size leaves a sleeping compute asleep (idle_resize)'];
    expect(of(asleep)).toEqual([assumed, undefined]);
    expect(of(asleep, { limits: 'told' })).toEqual([
      assumed,
      [expect.objectContaining({ fact: 'idle_resize', value: 'stays', verified: false })],
    ]);
    expect(of(asleep, { idle_resize: 'wakes' })[0]).toEqual([
      '  verified: a new size wakes a sleeping compute for seconds (idle_resize)',
    ]);
    expect(of(awake)[0]).toEqual(['  assumed: a new timeout alone disconnects nobody (timeout_change)']);
    expect(of({ minCu: 1, maxCu: 4 })).toEqual([[], undefined]);
  });

  it('says of a compute that no policy selects that none does', () => {
    const text = describeExplanation(
      explanationOf([aSchedule({ select: aSelector({ projects: ['nobody'] }) })]),
      createColors(false),
    );
    expect(text).toContain('wanted    size as it is, suspend_after as it is');
    expect(text).toContain('Nothing to change\n  no policy selects this compute [unmatched]');
  });
});
