import { describe, expect, it } from 'vitest';
import { computeView } from '../../src/adapters/http/page/compute-view.tsx';
import { fleetView } from '../../src/adapters/http/page/fleet-view.tsx';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { computePage, fleetPage } from '../../src/app/operator/fleet-page.ts';
import { createWeekAhead } from '../../src/app/operator/week-ahead.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { DisruptionRule } from '../../src/domain/policy/disruption.ts';
import type { Project } from '../../src/ports/control-api.ts';
import type { RefusedProjectDocument, StatusDocument } from '../../src/ports/documents.ts';
import { QUIET, textOf } from '../http/quiet-status.ts';
import { aCompute, aRecord, aSchedule, at, aWindow, compiled, currentRules, REAL } from '../support/builders.ts';

const READ = at('2026-03-02T07:58:00Z');
const LATE = at('2026-03-02T08:29:00Z');
const policies = compiled(aSchedule({ windows: [{ at: [aWindow()], size: { minCu: 2, maxCu: 4 } }] }));

interface Given {
  of?: typeof policies;
  state?: 'active' | 'idle';
  /** 0.25-1 CU, what is set, by default. */
  baselineCu?: [number, number];
  refused?: readonly RefusedProjectDocument[];
}

/** The pages of a daemon that has last read at 07:58, and decided then or later. */
function pagesAt(nowMs: number, decidedMs = READ, mode: 'enforce' | 'observe' = 'enforce', given: Given = {}) {
  const { of = policies, state = 'idle', refused = [], baselineCu } = given;
  const compute = aCompute({ minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300, state });

  const fleet = createFleet({ clock: { now: () => nowMs, monotonicMs: () => nowMs } as typeof REAL.clock });
  const { projectId } = compute;
  fleet.cache({
    ...{ project: { projectId, name: 'shop', account: 'main' } as Project, computes: [compute], unreadable: [] },
    ...{ readAtMs: READ, readAtMonotonicMs: READ },
  });
  const [minCu, maxCu] = baselineCu ?? [compute.minCu, compute.maxCu];
  const lastApplied = baselineCu ? { minCu: compute.minCu, maxCu: compute.maxCu } : {};
  const record = aRecord({ baseline: { ...compute, minCu, maxCu }, lastApplied });
  const situation = { policies: of, nowMs: decidedMs, mode, projectBusy: false } as const;
  fleet.putEvaluated({ ...evaluate({ ...situation, compute, record }), compute, record });
  const parts = {
    store: { holds: async () => [], freezes: async () => [], history: async () => [] },
    ...{ now: async () => nowMs, clock: REAL.clock },
    daemon: {
      ...{ fleet, mode, policies: () => of, owners: () => [], costs: () => undefined },
      ...{ rules: () => currentRules().current, refusedProjects: () => refused },
      week: createWeekAhead({ policies: () => of, clock: REAL.clock }),
    },
  } as unknown as Parameters<typeof fleetPage>[0];
  const query = { q: '', page: 1 };
  return {
    fleet: () => fleetPage(parts, query),
    async fleetText(status: object = {}) {
      const shown = { status: { ...QUIET, operations: [], holds: [], ...status } as unknown as StatusDocument, query };
      const page = await fleetView({
        ...shown,
        fleet: await fleetPage(parts, query),
        costs: null,
        decisions: [],
        stale: undefined,
      });
      return textOf(page).replace(/\s+/g, ' ');
    },
    async computeText() {
      const found = await computePage(parts, compute.computeId);
      if (!found.ok) throw new Error(found.error.message);
      return textOf(await computeView({ compute: found.value, token: {} })).replace(/\s+/g, ' ');
    },
  };
}

it.each([
  ['active', [4, 8], { computes: 1, low_cu: 3.75, high_cu: 7 }],
  // With its baseline it would sleep, too.
  ['idle', [4, 8], { computes: 1, low_cu: 0, high_cu: 0 }],
  ['active', [0.25, 0.5], { computes: 1, low_cu: -0.5, high_cu: 0 }],
  ['active', undefined, { computes: 0, low_cu: 0, high_cu: 0 }],
] as const)('what ebb saves now of a compute that is %s, with a baseline of %j CU', async (state, baseline, saved) => {
  const baselineCu = baseline && ([...baseline] as [number, number]);
  const page = await pagesAt(READ, READ, 'enforce', { state, ...(baselineCu && { baselineCu }) }).fleet();
  expect(page.saved_now).toEqual(saved);
});

describe('a change that fell due while the control API gave no answer', () => {
  it('is counted as overdue, and no longer as what comes next', async () => {
    expect(await pagesAt(LATE).fleet()).toMatchObject({
      overdue: { computes: 1, first: '2026-03-02T08:00:00Z' },
      next_hour: { computes: 0, first: null },
      upcoming: [],
    });
    expect(await pagesAt(READ).fleet()).toMatchObject({
      overdue: { computes: 0, first: null },
      next_hour: { computes: 1, first: '2026-03-02T08:00:00Z' },
    });
  });

  it('is shown with what is wanted by now, on both pages', async () => {
    const fleet = await pagesAt(LATE).fleetText();
    expect(fleet).toContain('1 overdue since 08:00 29 min ago');
    expect(fleet).toMatch(/0\.25-1 CU 5m *2-4 CU *overdue since 08:00 29 min ago *18:00 in 9 h 31 min: 0\.25-1 CU/);
    const page = await pagesAt(LATE).computeText();
    expect(page).toContain('Has0.25-1 CU, suspends after 5m, read 07:58 31 min ago');
    expect(page).toContain('Wanted2-4 CU');
    expect(page).toContain('Nextoverdue since 08:00 29 min ago');
    expect(await pagesAt(READ).fleetText()).not.toContain('overdue');
  });

  it('is shown as overdue also where it is decided, but not made', async () => {
    const decidedMs = at('2026-03-02T08:00:30Z');
    expect((await pagesAt(LATE, decidedMs).fleet()).overdue).toEqual({ computes: 1, first: '2026-03-02T08:00:00Z' });
    expect(await pagesAt(LATE, decidedMs).fleetText()).toMatch(
      /2-4 CU *overdue since 08:00 29 min ago: size 0\.25-1 → 2-4/,
    );
    expect(await pagesAt(decidedMs, decidedMs).fleetText()).toMatch(/2-4 CU *due now: size 0\.25-1 → 2-4 CU/);
  });

  it('is not overdue where nothing is written anyway', async () => {
    expect((await pagesAt(LATE, READ, 'observe').fleet()).overdue).toEqual({ computes: 0, first: null });
    expect(await pagesAt(LATE, READ, 'observe').fleetText()).not.toContain('overdue');
  });

  it('is due from the end of its wait, and never where it waits for sleep alone', async () => {
    const waitsFor = (lower: DisruptionRule) =>
      compiled(
        aSchedule({
          windows: [{ at: [aWindow()], size: { minCu: 0.25, maxCu: 0.5 } }],
          disruption: { lower, newlyDiscovered: 'act' },
        }),
      );
    const twoMinutes = { when: 'idle', deadlineMs: 120_000, atDeadline: 'apply' } as const;
    const firstOf = async (now: string, decided: string, of = waitsFor(twoMinutes)) => {
      const [nowMs, decidedMs] = [at(`2026-03-02T${now}Z`), at(`2026-03-02T${decided}Z`)];
      const { overdue } = await pagesAt(nowMs, decidedMs, 'enforce', { of, state: 'active' }).fleet();
      return overdue.first;
    };
    // Decided before the boundary, while it waits, and after the wait.
    for (const decided of ['07:58:00', '08:00:10', '08:02:05']) {
      expect([decided, await firstOf('08:02:35', decided)]).toEqual([decided, null]);
      expect([decided, await firstOf('08:03:10', decided)]).toEqual([decided, '2026-03-02T08:02:00Z']);
    }
    const forSleep = waitsFor({ when: 'idle', atDeadline: 'apply' });
    for (const decided of ['07:58:00', '08:00:10']) expect(await firstOf('08:29:00', decided, forSleep)).toBe(null);
  });

  it('says on the page of its compute what the control API refuses', async () => {
    const project = { project_id: 'p-one', project_name: 'shop', request: 'read' } as const;
    const refusal = { ...project, message: "can't be read: 403: project is suspended", since: '2026-03-02T07:59:00Z' };
    const refused = [refusal, { ...refusal, project_id: 'p-two', project_name: 'blog' }];
    const page = await pagesAt(LATE, READ, 'enforce', { refused }).computeText();
    expect(page).toMatch(/Project shop can.*t be read: 403: project is suspended ?; since 07:59 30 min ago/);
    expect(page).not.toContain('blog');
    const fleet = await pagesAt(LATE).fleetText({ refused_projects: refused });
    expect(fleet).toMatch(/2 projects can.{1,5}t be managed/);
    expect(fleet).toMatch(/2 projects can.*t be read: 403: project is suspended ?; since 07:59 30 min ago: shop, blog/);
  });

  it('a problem that names an instant says how long ago that is', async () => {
    const checks = [{ name: 'control API', ok: false, message: '503; computes are shown as of 2026-03-02T07:58:00Z' }];
    expect(await pagesAt(LATE).fleetText({ readiness: { ready: false, checks } })).toContain(
      'Not ready: control API 503; computes are shown as of 07:58 31 min ago',
    );
  });
});
