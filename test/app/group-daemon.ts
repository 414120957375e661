/** Daemons of one group as far as their rules go: a store in memory, ten active computes, files that a test sets, and stepped time. */
import { onTestFinished } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type ReportDeps, startReporting } from '../../src/app/operator/daemon-reports.ts';
import { createOverrides } from '../../src/app/overrides.ts';
import { type ActivateDeps, startWithRules } from '../../src/app/rollout/activate.ts';
import { noteAges } from '../../src/app/rollout/delayed-reading.ts';
import { type ReloadDeps, startReloading } from '../../src/app/rollout/reload.ts';
import { cannotWrite, checkWritePermission, createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { compileRules } from '../../src/app/rules.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import type { Size } from '../../src/domain/compute/compute.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import type { Rules } from '../../src/ports/rules.ts';
import type { Generation, Store } from '../../src/ports/store.ts';
import { aCompute, aSchedule, at, FREE_SLOTS, NO_COSTS, NO_RECEIVERS, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryQueue } from '../support/simulated/queue.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const COMPUTES = Array.from({ length: 10 }, (_, index) =>
  aCompute({ projectId: `p-${index}`, projectName: `web-${index}`, computeId: `ep-${index}` }),
);

/** Everything at this size, always. */
export function rulesAt(size: Size, more: Partial<Rules> = {}): Rules {
  const windows = [{ at: [{ kind: 'always' as const }], size }];
  const policies = policySet([aSchedule({ windows, otherwise: 'leave' })], new Map());
  const none = {
    manualChanges: undefined,
    profiles: new Map(),
    verified: new Map(),
    revision: undefined,
    costs: NO_COSTS,
  };
  const disruption = { newlyDiscovered: 'act', raise: { when: 'any', atDeadline: 'apply' } } as const;
  return { policies, disruption, ...none, teams: [], notify: NO_RECEIVERS, ...more };
}

export interface GroupDaemonOptions {
  rules: Rules;
  decisionVersion?: number;
  /** Asks for approval where many computes would be disconnected. */
  stages?: boolean;
  /** On a store of its own. */
  isAlone?: boolean;
  /** Its files were written so long before its start. */
  writtenAgoMs?: number;
}

export function aGroup() {
  const clock = createSteppedClock(NOW_MS, () => false, { shortestRoundMs: 1 });
  const held: { current?: Generation | undefined } = {};
  const store: Store = createMemoryStore(clock, undefined, held);
  /** When all daemons found that the store had lost its data. */
  const loss: { atMs?: number } = {};
  const daemons: { name: string; isAlive: boolean; deps: ReloadDeps & ReportDeps }[] = [];
  /** Who may write, and by which policies, second by second. */
  const writers: { atMs: number; name: string; set: string }[] = [];

  async function start(
    name: string,
    { rules, decisionVersion = 1, stages = false, isAlone = false, writtenAgoMs }: GroupDaemonOptions,
  ) {
    const own = { name, isAlive: true, deps: {} as ReloadDeps & ReportDeps };
    const log = memoryLog();
    const files = { rules, isNew: false };
    const telemetry = { log, metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
    const fleet = createFleet({ clock });
    const projects = COMPUTES.map(({ account, projectId, projectName }) => ({ account, projectId, name: projectName }));
    COMPUTES.forEach((compute, index) => {
      const seen = { project: projects[index], computes: [compute], unreadable: [] };
      fleet.cache({ ...seen, readAtMs: NOW_MS, readAtMonotonicMs: 0 } as never);
    });
    own.deps = {
      ...{ mode: 'enforce', store, fleet, telemetry, scheduledBoundaries: new Set() },
      newId: REAL.newId,
      // What is killed does nothing from then on.
      clock: {
        ...clock,
        every: (ms: number, tick: () => Promise<void>) =>
          clock.every(ms, async () => (own.isAlive ? tick() : undefined)),
      },
      rhythm: { resyncMs: 30_000, rulesMs: 2_000 },
      rules: { current: compileRules(rules) },
      sets: createPolicySets({ stages, accepted: undefined, decisionVersion }),
      queue: createMemoryQueue(clock),
      overrides: createOverrides({ telemetry } as never),
      samples: { historyOf: () => new Map() },
      slots: FREE_SLOTS,
      reportEvent() {},
      api: {
        accountStatus: () => [],
        async *listProjects() {
          yield { ok: true, value: projects };
        },
        listComputes: async (project: { projectId: string }) => ({
          ok: true,
          value: { computes: COMPUTES.filter(({ projectId }) => projectId === project.projectId), unreadable: [] },
        }),
      },
      outages: createOutages(telemetry, clock),
      storeWatch: { check: async () => {}, lostAtMs: () => loss.atMs },
      storeClock: { excessiveOffsetMs: async () => undefined, lastExcessiveOffsetMs: () => undefined },
      leaderLease: { isAlone, isHeld: () => false },
      blocked: () => cannotWrite(own.deps),
      readiness: async () => ({ ready: true, checks: [] }),
      version: 'test',
      runInBackground: async (_task: string, work: () => Promise<void>) => work(),
    } as unknown as ReloadDeps & ReportDeps;
    const { deps } = own;
    const ages = new Map(writtenAgoMs === undefined ? [] : [['policies.yaml', writtenAgoMs]]);
    noteAges(deps.sets.changedAt, ages, clock.monotonicMs());
    await startWithRules(deps as ActivateDeps);
    const reloading = startReloading(deps, {
      changed: async () => files.isNew,
      writtenAgoMs: async () => new Map(),
      async read() {
        files.isNew = false;
        return { ok: true, rules: files.rules, warnings: [], needRestart: [], replaced: true };
      },
    });
    const reporting = startReporting(deps);
    daemons.push(own);
    onTestFinished(async () => {
      await reloading.close();
      await deps.queue.close(0);
    });
    return {
      ...{ deps, log },
      /** From now on it does nothing, and tells nobody; `resume` undoes it, as if the process had only slept. */
      kill() {
        own.isAlive = false;
      },
      resume() {
        own.isAlive = true;
      },
      /** It ends, and says so. */
      async stop() {
        own.isAlive = false;
        await reporting.close();
      },
      write(other: Rules) {
        Object.assign(files, { rules: other, isNew: true });
      },
      said: (event: string) => log.lines.filter(({ fields }) => Reflect.get(fields, 'event') === event),
    };
  }

  async function look(): Promise<void> {
    for (const { name, isAlive, deps } of daemons) {
      if (!isAlive || !(await checkWritePermission(deps)).ok) continue;
      writers.push({ atMs: clock.now(), name, set: deps.rules.current.policies.set.hash });
    }
  }

  /** A daemon of 0.1.0, as far as others see it: it registers policies, reports every 30 s, and compares numbers and policies. */
  async function startOld({ policies: { hash: setHash } }: Rules) {
    const own = { number: 0, isAlive: true };
    if (held.current?.setHash !== setHash)
      held.current = { number: Math.max(clock.now(), (held.current?.number ?? 0) + 1), setHash };
    own.number = held.current?.number ?? 0;
    const report = async () => {
      const value = { mode: 'enforce', set_hash: setHash, last_seen: isoInstant(clock.now()) };
      if (own.isAlive) await store.putDocument('daemons', setHash, JSON.stringify({ version: 1, value }));
    };
    await report();
    const reporting = clock.every(30_000, report);
    onTestFinished(() => reporting.close());
    return {
      mayWrite() {
        const { current } = held;
        if (current?.setHash === setHash) own.number = current.number;
        return current === undefined || current.number <= own.number;
      },
      kill() {
        own.isAlive = false;
      },
    };
  }

  return {
    ...{ store, held, loss, start, startOld, clock },
    /** Goes on for so long, and tells who could write meanwhile, by name. */
    async pass(seconds: number): Promise<string[]> {
      const sinceMs = clock.now();
      for (let second = 0; second < seconds; second += 1) {
        await clock.runTo(clock.now() + 1_000);
        await look();
      }
      return [...new Set(writers.filter(({ atMs }) => atMs > sinceMs).map(({ name }) => name))].toSorted();
    },
  };
}
