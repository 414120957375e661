import type { UsageAnswer } from '../../src/domain/usage/known.ts';
import { type UsageUnit, unitName } from '../../src/domain/usage/usage.ts';
import { bucketStart, type Granularity, periodsOf, type Unit } from '../../src/emulator/consumption/history.ts';
import type { Consumption, Fleet, Load } from '../../src/emulator/fleet.ts';
import { LOOKBACK_MS } from '../../src/emulator/routes/consumption.ts';
import { createWorld } from '../../src/emulator/world/create-world.ts';
import type { WorldState } from '../../src/emulator/world/entities.ts';
import { execute } from '../../src/emulator/world/execute.ts';
import { quartersOf } from '../../src/emulator/world/usage.ts';
import type { ApiResult, ControlApi, UsagePages, UsageQuery } from '../../src/ports/control-api.ts';
import { compute } from '../emulator/support.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** A Monday. */
export const START_MS = Date.parse('2026-11-23T00:00:00Z');

const API: Load = { class: 'bursty_api', cu: 1, utcOffsetHours: 0 };
const OFFICE: Load = { class: 'office_users', cu: 1.5, utcOffsetHours: 1 };

/** Three projects of an organization, with two branches each. */
export function usageFleet(consumption: Partial<Consumption> = {}, loads: readonly Load[] = [API, OFFICE]): Fleet {
  const projects = ['one', 'two', 'three'].map((id, index) => ({
    ...{ id, name: `${id}-prod`, account: 'acme', regionId: 'aws-eu-central-1', pgVersion: 17 },
    computes: ['main', 'dev'].map((branch, place) =>
      compute({
        id: `ep-${id}-${branch}`,
        branchId: `br-${id}-${branch}`,
        branch: { name: branch, default: branch === 'main' },
        load: [loads[(index + place) % loads.length] ?? API],
      }),
    ),
  }));
  return { projects, consumption };
}

/** A world that begins at `START_MS`; `seed` gives other clients. */
export function usageWorld(fleet: Fleet, seed: number): WorldState {
  return createWorld({ fleet, seed, startMs: START_MS, operationTimeMs: 1000 });
}

export function passTo(world: WorldState, ms: number): void {
  execute(world, { kind: 'pass_time' }, ms);
}

/** What the routes would answer for all branches, or all projects. */
export function answerOf(
  world: WorldState,
  level: 'projects' | 'branches',
  granularity: Granularity = 'hourly',
): UsageAnswer {
  const seconds = granularity === 'hourly' ? 3600 : 86_400;
  const range = { fromMs: START_MS, toMs: bucketStart(world.nowMs, granularity), granularity };
  const units = [...world.ledgers.values()].flatMap((ledger): Unit[] =>
    level === 'projects' ? [{ ledger }] : [...ledger.branches.keys()].map((branchId) => ({ ledger, branchId })),
  );
  return {
    ...{ seconds, fromMs: range.fromMs, toMs: range.toMs },
    units: units.map((unit) => {
      const buckets = new Map<number, number>();
      for (const period of periodsOf(world, unit, range)) {
        for (const [startMs, { cuMs }] of period.buckets) {
          buckets.set(startMs, (buckets.get(startMs) ?? 0) + Math.round(cuMs / 1000));
        }
      }
      return { projectId: unit.ledger.projectId, branchId: unit.branchId ?? null, buckets };
    }),
  };
}

/** The routes for usage of a world, without HTTP; `calls` counts them. */
export function usageApi(world: WorldState): Pick<ControlApi, 'usage'> & { calls: number } {
  const api = {
    calls: 0,
    async usage({ level, granularity, fromMs, toMs }: UsageQuery): Promise<ApiResult<UsagePages>> {
      api.calls += 1;
      if (fromMs < bucketStart(world.nowMs, granularity) - LOOKBACK_MS[granularity])
        return { ok: false, error: { code: 'invalid', route: 'usage', message: '406: too long ago' } };
      const isListed = (deletedAtMs?: number) => deletedAtMs === undefined || world.consumption.deleted === 'listed';
      const units = [...world.ledgers.values()].flatMap((ledger): Unit[] =>
        level === 'projects'
          ? [{ ledger }]
          : [...ledger.branches].flatMap(([branchId, branch]) =>
              isListed(branch.deletedAtMs) ? [{ ledger, branchId }] : [],
            ),
      );
      const pages: UsagePages = { units: [], plans: new Map() };
      for (const unit of units) {
        const buckets = new Map<number, Record<string, number>>();
        for (const period of periodsOf(world, unit, { fromMs, toMs, granularity })) {
          pages.plans.set(period.startMs, period.plan);
          for (const [startMs, { cuMs }] of period.buckets) {
            buckets.set(startMs, { compute_unit_seconds: Math.round(cuMs / 1000) });
          }
        }
        pages.units.push({ projectId: unit.ledger.projectId, branchId: unit.branchId ?? null, buckets });
      }
      return { ok: true, value: pages };
    },
  };
  return api;
}

/** What each unit really used, in CU-seconds by the start of the bucket. */
export function truthOf(world: WorldState, unit: UsageUnit, seconds = 3600): Map<number, number> {
  const ledger = world.ledgers.get(unit.projectId);
  if (ledger === undefined) throw new Error(`nothing is known of ${unitName(unit)}`);
  const used = new Map<number, number>();
  for (const branchId of unit.branchId === null ? ledger.branches.keys() : [unit.branchId]) {
    for (const [quarter, { cuMs }] of quartersOf(world, ledger, branchId)) {
      const startMs = Math.floor((quarter * 900) / seconds) * seconds * 1000;
      used.set(startMs, (used.get(startMs) ?? 0) + cuMs / 1000);
    }
  }
  return used;
}
