import { request } from 'undici';
import { z } from 'zod';
import { type Emulator, startEmulator } from '../../emulator/server.ts';
import { computeIdOf, demoFleet } from './demo-fleet.ts';
import type { Visit } from './working-day.ts';

/** What the demo reads of the emulator's state. */
const ComputeUse = z.object({
  compute_id: z.string(),
  project_id: z.string(),
  restarts: z.number(),
  connections_dropped: z.number(),
  cu_seconds_low: z.number(),
  cu_seconds_high: z.number(),
});
const State = z.object({ computes: z.array(ComputeUse) });
export type ComputeUse = z.infer<typeof ComputeUse>;

/** A platform of the demo: an emulator with its fleet, spoken to over HTTP only. */
export interface DemoPlatform {
  url: string;
  apiKey: string;
  /** Where it can be asked for connections, as one asks a Prometheus. */
  prometheusUrl: string;
  onEvents: Emulator['onEvents'];
  /** Clients connect, stay, and reconnect when a restart drops them. */
  visit(visit: Visit): Promise<void>;
  use(): Promise<ComputeUse[]>;
  close(): Promise<void>;
}

interface DemoTime {
  now(): number;
  realDelayMs(instantMs: number): number;
}

const SEED = 7;

/** Starts an emulator on a free port of this machine, in the time of `clock`. */
export async function startPlatform({ clock }: { clock: DemoTime }): Promise<DemoPlatform> {
  const listen = { host: '127.0.0.1', port: 0 };
  const emulator = await startEmulator({ listen, fleet: demoFleet(), seed: SEED, clock });
  const own = `${emulator.origin}/_emulator`;
  return {
    url: emulator.url,
    apiKey: emulator.apiKey,
    prometheusUrl: `${own}/prometheus`,
    onEvents: emulator.onEvents,
    async visit({ project, connections, forMinutes }) {
      const body = JSON.stringify({ connections, for_seconds: forMinutes * 60, reconnect: true });
      const headers = { 'content-type': 'application/json' };
      const url = `${own}/computes/${computeIdOf(project)}/connect`;
      const answer = await request(url, { method: 'POST', headers, body });
      await answer.body.dump();
    },
    async use() {
      const answer = await request(`${own}/state`);
      return State.parse(await answer.body.json()).computes;
    },
    close: () => emulator.close(),
  };
}
