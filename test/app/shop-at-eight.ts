import { onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

export const EIGHT = Date.parse('2026-03-02T08:00:00Z');
export const POLICIES = `version: 1
policies:
  - name: more
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 2-4 }]
    otherwise: leave
`;

/** A daemon of one small compute, ten minutes before a window makes it larger. */
export async function startShop(options: Partial<Parameters<typeof startSimulatedDaemon>[0]> = {}) {
  const computes = { shop: { minCu: 0.25, maxCu: 1 } };
  const daemon = await startSimulatedDaemon({ fromMs: EIGHT - 600_000, policies: POLICIES, computes, ...options });
  onTestFinished(() => daemon.close());
  return daemon;
}
