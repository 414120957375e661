import { startUsageRounds, type UsageRoundsDeps } from '../../src/app/usage/usage-rounds.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ControlApi } from '../../src/ports/control-api.ts';
import { currentRules } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import { DAY_MS, passTo, START_MS, usageApi, usageFleet, usageWorld } from './support.ts';

/** Rounds of a daemon whose time and ticks the test makes. */
export function startRounds(
  usage?: ControlApi['usage'],
  rules = currentRules(),
  store = createMemoryStore(createSteppedClock(0, () => false)),
) {
  const world = usageWorld(usageFleet(), 3);
  passTo(world, START_MS + 2 * DAY_MS + 600_000);
  const said: { event: string; level: string }[] = [];
  const gauges = new Map<string, number>();
  const failures: unknown[] = [];
  /** Projects of which only the list is known, and the computes of the others. */
  const unread = new Set<string>();
  const computes = new Map<string, Compute[]>();
  const read = { readAtMs: 0, readAtMonotonicMs: 0 };
  const writeBacks: (() => Promise<void>)[] = [];
  let isLeader = true;
  let mayWrite = true;
  let tick = async () => {};
  const ticks: (() => Promise<void>)[] = [];
  const api = usageApi(world);
  const log = (level: string) => (fields: object) =>
    void said.push({ level, event: String((fields as { event?: string }).event) });
  const projects = ['one', 'two', 'three'].map((projectId) => ({
    ...{ account: 'main', projectId, name: projectId, regionId: 'r', updatedAtMs: 0, organizationId: 'org-acme' },
  }));
  const listComparedAtMonotonicMs = new Map([['main', 0]]);
  const deps: UsageRoundsDeps = {
    api: { usage: usage ?? api.usage, operationsFrom: async () => Promise.reject(new Error('not in enforce mode')) },
    store,
    clock: {
      now: () => world.nowMs,
      every: (_: number, look: () => Promise<void>) => {
        tick = look;
        ticks.push(look);
        return { close: async () => {} };
      },
    } as unknown as UsageRoundsDeps['clock'],
    fleet: {
      listComparedAtMonotonicMs,
      projectIds: () => projects.map(({ projectId }) => projectId),
      listed: (id: string) => projects.find(({ projectId }) => projectId === id),
      cachedProjects: () =>
        projects
          .filter(({ projectId }) => !unread.has(projectId))
          .map((project) => ({ project, computes: computes.get(project.projectId) ?? [], unreadable: [], ...read })),
    },
    mode: 'enforce',
    rhythm: { usageMs: 60_000 },
    storeWatch: { onLoss: (writeBack) => void writeBacks.push(writeBack) },
    rules,
    telemetry: {
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      metrics: {
        increment: () => {},
        observe: () => {},
        set: (name, labels, value) => void gauges.set(`${name} ${Object.values(labels).join(' ')}`, value),
        clear: (name) => {
          for (const key of [...gauges.keys()]) if (key.startsWith(`${name} `)) gauges.delete(key);
        },
      },
    },
    leaderLease: { isHeld: () => isLeader },
    mayWrite: async () => ({ ok: mayWrite }),
    runInBackground: async (_, round) => round().catch((error: unknown) => void failures.push(error)),
    accounts: [{ name: 'main' }],
  };
  const rounds = startUsageRounds(deps);
  return {
    ...{ world, api, store, said, gauges, failures, rounds, unread, computes, projects, listComparedAtMonotonicMs },
    tick: () => tick(),
    /** A daemon that has just started looks every few seconds whether a list has come. */
    look: () => ticks[0]?.(),
    /** Deletes the stored costs, does `since`, then lets the daemon notice the loss. */
    loseCosts: async (since = async () => {}) => {
      await store.deleteDocuments('costs', ['month', 'detail']);
      await since();
      for (const writeBack of writeBacks) await writeBack();
    },
    lead: (held: boolean) => {
      isLeader = held;
    },
    permit: (ok: boolean) => {
      mayWrite = ok;
    },
  };
}

export type Rounds = ReturnType<typeof startRounds>;

/** The first round is under way when the rounds have been started. */
export async function firstRound({ tick }: Rounds): Promise<void> {
  await tick();
}
