import { describe, expect, it } from 'vitest';
import { periodReport } from '../../src/app/recommend/period-report.ts';
import { reportText } from '../../src/cli/report/text.ts';
import type { Finding } from '../../src/domain/recommend/finding.ts';
import { aCompute } from '../support/builders.ts';

/** What a report says of a compute with these findings. */
function saidOf(...found: { kind: string; policy: boolean; high: number }[]) {
  const compute = aCompute();
  const findings = found.map(
    ({ kind, policy, high }) =>
      ({
        ...{ compute, kind, ...(policy && { policy: {} }) },
        ...{ now: { suspend_timeout_seconds: 3600 }, proposed: { suspend_timeout_seconds: 300 } },
        savesCuHours: { low: 0, mid: high, high },
      }) as unknown as Finding,
  );
  const past = [{ compute, readHistory: () => ({ fromMs: 0, toMs: 1, intervals: [], unknown: [] }) }];
  const { computes } = periodReport({
    ...{ atMs: 0, projects: [], periods: new Map(), past, findings, prices: {}, planOf: () => undefined, missing: [] },
  } as never);
  const kindOf = (finding: unknown) => (finding as { kind: string } | undefined)?.kind;
  return { setting: kindOf(computes[0]?.setting), cause: kindOf(computes[0]?.cause) };
}

it('a change that saves nothing is no reason why no setting helps', () => {
  const asleepAnyway = { kind: 'long_timeout', policy: true, high: 0 };
  const awake = { kind: 'awake', policy: false, high: 10 };
  expect(saidOf(asleepAnyway)).toEqual({ setting: undefined, cause: undefined });
  expect(saidOf(asleepAnyway, awake)).toEqual({ setting: undefined, cause: 'awake' });
  expect(saidOf(awake, { ...asleepAnyway, high: 1 })).toEqual({ setting: 'long_timeout', cause: undefined });
});

const DAY_MS = 86_400_000;

/** What is read of projects on the free plan ten days after their period began. */
function read(projectIds: readonly string[]) {
  const period = { fromMs: 0, toMs: 20 * DAY_MS, cuHours: 1, plan: 'free' };
  return {
    ...{ atMs: 10 * DAY_MS, projects: projectIds.map((projectId) => ({ projectId, name: projectId })), past: [] },
    ...{ periods: new Map(projectIds.map((projectId) => [projectId, period])), findings: [], prices: { launch: 0.1 } },
    ...{ planOf: () => undefined, missing: [] },
  };
}

it('a project without computes has no projection', () => {
  const { projects } = periodReport(read(['shop']) as never);
  expect(projects).toEqual([expect.objectContaining({ projectId: 'shop', includedCuHours: 100 })]);
  expect(projects[0]).not.toHaveProperty('projected');
});

it.each([
  [[{ startMs: DAY_MS, endMs: 5 * DAY_MS, start: 'start', end: 'suspend' }], 'awake 40 % of the time, for its clients'],
  [[], 'it was always asleep'],
])('where nothing is to change, it says how much of the time the compute was awake', (intervals, said) => {
  const compute = aCompute();
  const history = { fromMs: 0, toMs: 10 * DAY_MS, intervals, unknown: [] };
  const report = periodReport({
    ...read([compute.projectId]),
    past: [{ compute, readHistory: () => history }],
  } as never);
  expect(reportText(report)).toContain(`nothing to change: ${said}`);
});

it('where a policy sets what would be changed, it names both, and does not say that no setting helps', () => {
  const compute = aCompute();
  const found = {
    ...{ finding: 'long_timeout', compute, evidence: [], setBy: 'policy nights' },
    ...{ now: { suspend_timeout_seconds: 3600 }, proposed: { suspend_timeout_seconds: 300 } },
    savesCuHours: { low: 1, mid: 5, high: 9 },
  };
  const history = { fromMs: 0, toMs: 10 * DAY_MS, intervals: [], unknown: [] };
  const report = periodReport({
    ...read([compute.projectId]),
    ...{ findings: [found], past: [{ compute, readHistory: () => history }] },
  } as never);
  const said = /suspend_after 1h → 5m, set by policy nights: change it there$/m;
  expect(reportText(report)).toMatch(said);
  expect(reportText(report)).not.toContain('no setting helps');
});

describe('what would be paid on Launch', () => {
  /** A project on Free whose only compute was awake for so many of the first ten days of a period of twenty. */
  const aProject = (projectId: string, organizationId: string, awakeDays: number) => {
    const intervals = Array.from({ length: awakeDays }, (_, day) => ({
      startMs: day * DAY_MS,
      endMs: (day + 1) * DAY_MS,
    }));
    const compute = aCompute({ projectId, minCu: 1, maxCu: 1 });
    return {
      project: { projectId, name: projectId, account: 'a', organizationId },
      period: { fromMs: 0, toMs: 20 * DAY_MS, cuHours: 24 * awakeDays, plan: 'free' },
      past: { compute, readHistory: () => ({ fromMs: 0, toMs: 10 * DAY_MS, intervals, unknown: [] }) },
    };
  };
  const reportOf = (all: ReturnType<typeof aProject>[], periodUnknown?: string) =>
    periodReport({
      ...read([]),
      projects: all.map(({ project }) => project),
      past: all.map(({ past }) => past),
      periods: new Map(
        all.flatMap(({ project: { projectId }, period }) =>
          projectId === periodUnknown ? [] : [[projectId, period] as const],
        ),
      ),
    } as never);
  const [shop, blog, lone] = [aProject('shop', 'o-1', 10), aProject('blog', 'o-1', 1), aProject('lone', 'o-2', 1)];

  it('is the compute of all projects of an organization one of which runs out', () => {
    const { onLaunch, projects } = reportOf([shop, blog, lone]);
    const cuHoursOf = (id: string) => projects.find(({ projectId }) => projectId === id)?.projected?.mid ?? Number.NaN;
    const usd = 0.1 * (cuHoursOf('shop') + cuHoursOf('blog'));
    expect(onLaunch).toEqual({ organizations: 1, projects: 2, usd });
    expect(usd).toBeGreaterThan(0.1 * 24 * 20);
    expect(reportOf([blog, lone]).onLaunch).toBeUndefined();
  });

  it('is not said where the usage of one of them could not be read', () => {
    expect(reportOf([shop, blog, lone], 'lone').onLaunch).toMatchObject({ projects: 2 });
    expect(reportOf([shop, blog, lone], 'blog').onLaunch).toBeUndefined();
  });

  it('names several organizations', () => {
    const text = reportText(reportOf([shop, aProject('other', 'o-2', 10), lone]));
    expect(text).toContain('On Launch, the compute of all 3 projects of their 2 organizations would cost about $');
  });
});

it('what a project will have used is priced by its plan, and not on Free', () => {
  const compute = aCompute();
  const awake = [{ startMs: 0, endMs: 10 * DAY_MS, start: 'start', end: 'open' }];
  const past = [{ compute, readHistory: () => ({ fromMs: 0, toMs: 10 * DAY_MS, intervals: awake, unknown: [] }) }];
  const projectOn = (plan: string) =>
    periodReport({ ...read([compute.projectId]), past, planOf: () => plan } as never).projects[0];
  const { projected, projectedUsd } = projectOn('launch') ?? {};
  expect(projected?.mid).toBeGreaterThan(0);
  expect(projectedUsd?.mid).toBeCloseTo(0.1 * (projected?.mid ?? 0), 9);
  expect(projectOn('free')).not.toHaveProperty('projectedUsd');
});
