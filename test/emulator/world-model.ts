/** A world under random commands: how commands are carried out, and what must hold after each of them. */
import { expect } from 'vitest';
import { microsToCursor } from '../../src/emulator/wire/times.ts';
import { createWorld } from '../../src/emulator/world/create-world.ts';
import type { Project, WorldEvent, WorldState } from '../../src/emulator/world/entities.ts';
import { type Command, execute } from '../../src/emulator/world/execute.ts';
import type { Outcome } from '../../src/emulator/world/outcome.ts';
import { pageOfOperations } from '../../src/emulator/world/pages.ts';
import { compute, START_MS } from './support.ts';

export const PROJECT = 'shop';
export const BRANCHES = ['br-main', 'br-dev', 'br-pr'] as const;

export interface Running {
  world: WorldState;
  nowMs: number;
  /** The operation that runs on each compute, by what the events said. */
  runningOn: Map<string, string>;
  events: WorldEvent[];
}

/** Three branches, a primary on the first two, a replica on each; one compute is busy. */
export function startWorld(seed: number): Running {
  const computes = [
    compute({ id: 'ep-main', branchId: 'br-main', state: 'active', connections: 5 }),
    compute({ id: 'ep-main-ro', branchId: 'br-main', type: 'read_only' }),
    compute({ id: 'ep-dev', branchId: 'br-dev', suspendTimeoutSeconds: 60, state: 'active' }),
    compute({ id: 'ep-pr-ro', branchId: 'br-pr', type: 'read_only' }),
  ];
  const fleet = { projects: [{ id: PROJECT, name: PROJECT, regionId: 'aws-eu-central-1', pgVersion: 17, computes }] };
  const world = createWorld({ fleet, seed, startMs: START_MS, availabilityCheckMs: 7_200_000 });
  return { world, nowMs: START_MS, runningOn: new Map(), events: [] };
}

export function shopOf({ world }: Running): Project {
  const project = world.projects.get(PROJECT);
  if (project === undefined) throw new Error('the project is gone');
  return project;
}

/** No two operations of one compute run at the same time. */
function followOperations(running: Running, events: readonly WorldEvent[]): void {
  for (const event of events) {
    if (event.type !== 'operation' || event.computeId === undefined) continue;
    const current = running.runningOn.get(event.computeId);
    if (event.status === 'running') {
      expect(current, 'an operation begins while another runs').toBeUndefined();
      running.runningOn.set(event.computeId, event.operationId);
    } else if (current === event.operationId && event.status !== 'cancelling') {
      running.runningOn.delete(event.computeId);
    }
  }
}

function expectInvariants(running: Running): void {
  const project = shopOf(running);
  const computes = [...project.computes.values()];
  for (const branchId of BRANCHES) {
    const primaries = computes.filter((one) => one.branchId === branchId && one.type === 'read_write');
    expect(primaries.length, `read-write computes of ${branchId}`).toBeLessThanOrEqual(1);
  }
  for (const one of computes) {
    if (one.state !== 'active') expect(one.connected, `connections of ${one.id}, which is ${one.state}`).toEqual([]);
    expect(one.pendingState === undefined || one.queue.length > 0, `${one.id} waits for nothing`).toBe(true);
  }
  const open = project.operations.filter(({ endedAtMs }) => endedAtMs === undefined);
  expect(project.openOperations).toBe(open.length);
  expect([...running.world.computes.keys()].sort()).toEqual(computes.map(({ id }) => id).sort());
}

/** Carries a command out and checks everything that must hold whatever happened. */
export function run(running: Running, command: Command, passMs = 0): Outcome {
  running.nowMs += passMs;
  const { outcome, events } = execute(running.world, command, running.nowMs);
  running.events.push(...events);
  followOperations(running, events);
  expectInvariants(running);
  return outcome;
}

/** All operations by pages of `limit`, as a client reads them; `between` happens after each page. */
export function readPages(running: Running, limit: number, between: () => void): string[] {
  const ids: string[] = [];
  let cursor: number | undefined;
  for (;;) {
    const page = pageOfOperations(shopOf(running), limit, cursor);
    const last = page.at(-1);
    if (last === undefined || ids.includes(last.id)) return last === undefined ? ids : [...ids, last.id];
    ids.push(...page.map(({ id }) => id));
    cursor = last.createdAtMicros;
    between();
  }
}

/** What a run leaves behind, to be compared with another one. */
export function summary(running: Running): unknown {
  const project = shopOf(running);
  return {
    computes: [...project.computes.values()].map(
      ({ queue, connected, waiting, suspensionCheckAtMs: _, usage, ...rest }) => ({
        ...rest,
        usage: { ...usage, settledAtMs: undefined },
        queue: queue.map(({ id }) => id),
        connected,
        waiting,
      }),
    ),
    operations: project.operations.map((one) => ({ ...one, created: microsToCursor(one.createdAtMicros) })),
    events: running.events,
  };
}
