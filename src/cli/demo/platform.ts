import { request } from 'undici';
import { z } from 'zod';
import { type ComputeSettings, settingsOf } from '../../domain/compute/compute.ts';
import type { Fleet } from '../../emulator/fleet.ts';
import type { EmulatorClock } from '../../emulator/platform.ts';
import { type Emulator, startEmulator } from '../../emulator/server.ts';
import type { Visit } from './working-day.ts';

interface DemoCompute {
  project: string;
  minCu: number;
  maxCu: number;
  suspendTimeoutSeconds: number;
  state: 'active' | 'idle';
}

/** Three teams with eight computes, set as they often are: production sized for the peak, development never asleep. */
const COMPUTES: readonly DemoCompute[] = [
  { project: 'demo-web-shop', minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-web-blog', minCu: 1, maxCu: 2, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-web-checkout', minCu: 2, maxCu: 4, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-dev-alice', minCu: 1, maxCu: 2, suspendTimeoutSeconds: 3600, state: 'idle' },
  { project: 'demo-dev-bob', minCu: 1, maxCu: 2, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-dev-ci', minCu: 2, maxCu: 2, suspendTimeoutSeconds: 3600, state: 'idle' },
  { project: 'demo-data-etl', minCu: 2, maxCu: 8, suspendTimeoutSeconds: 300, state: 'idle' },
  { project: 'demo-data-reports', minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1, state: 'active' },
];

/** The account of the projects; its organization is the emulator's `org-ACCOUNT`. */
const DEMO_ACCOUNT = 'demo';

/** The settings of each compute before the day, by its id. */
export const SETTINGS_BEFORE: ReadonlyMap<string, ComputeSettings> = new Map(
  COMPUTES.map((compute) => [computeIdOf(compute.project), settingsOf(compute)]),
);

/** Each project has one compute. */
function computeIdOf(project: string): string {
  return `ep-${project}`;
}

export function projectOf(computeId: string): string {
  return computeId.slice(computeIdOf('').length);
}

function demoFleet(): Fleet {
  return {
    // During the day the daemon gets no usage: hours pass in less than a second, so that an answer would come too late.
    consumption: { routes: 'none', delayMinutes: 0 },
    projects: COMPUTES.map(({ project, ...compute }) => ({
      id: project,
      name: project,
      account: DEMO_ACCOUNT,
      regionId: 'aws-eu-central-1',
      pgVersion: 17,
      computes: [
        {
          ...compute,
          id: computeIdOf(project),
          branchId: `br-${project}`,
          branch: { name: 'main', default: true },
          type: 'read_write',
          connections: 0,
        },
      ],
    })),
  };
}

/** The parts of the emulator's state that the demo reads. */
const ComputeUse = z.object({
  compute_id: z.string(),
  project_id: z.string(),
  restarts: z.number(),
  connections_dropped: z.number(),
  cu_seconds: z.number(),
  cu_seconds_low: z.number(),
  cu_seconds_high: z.number(),
});
const State = z.object({ computes: z.array(ComputeUse) });
export type ComputeUse = z.infer<typeof ComputeUse>;

/** A platform of the demo: an emulator with its fleet, used over HTTP only. */
export interface DemoPlatform {
  url: string;
  apiKey: string;
  /** The URL that answers queries for connections like a Prometheus. */
  prometheusUrl: string;
  onEvents: Emulator['onEvents'];
  /** Clients connect, stay, and reconnect when a restart drops them. */
  visit(visit: Visit): Promise<void>;
  use(): Promise<ComputeUse[]>;
  /** Turns the usage routes on or off. */
  serveUsage(isServed: boolean): Promise<void>;
  close(): Promise<void>;
}

const SEED = 7;

/** Starts an emulator on a free port of this machine, in the time of `clock`. */
export async function startPlatform({ clock }: { clock: EmulatorClock }): Promise<DemoPlatform> {
  const listen = { host: '127.0.0.1', port: 0 };
  const emulator = await startEmulator({ listen, fleet: demoFleet(), seed: SEED, clock });
  const own = `${emulator.origin}/_emulator`;
  const post = async (path: string, document: object) => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify(document);
    await (await request(`${own}${path}`, { method: 'POST', headers, body })).body.dump();
  };
  return {
    url: emulator.url,
    apiKey: emulator.apiKey,
    prometheusUrl: `${own}/prometheus`,
    onEvents: emulator.onEvents,
    async visit({ project, connections, cu, forMinutes }) {
      const document = { connections, cu, for_seconds: forMinutes * 60, reconnect: true };
      await post(`/computes/${computeIdOf(project)}/connect`, document);
    },
    serveUsage: (isServed) => post('/consumption', { routes: isServed ? 'both' : 'none' }),
    async use() {
      const answer = await request(`${own}/state`);
      return State.parse(await answer.body.json()).computes;
    },
    close: () => emulator.close(),
  };
}
