/** Fleets for the emulator whose databases are used as real ones are. */
import type { AccountPlan } from '../src/domain/compute/cost.ts';
import type { FleetProject } from '../src/emulator/fleet.ts';
import { DAY, HOUR } from '../test/support/demand.ts';
import { drawRealFleet, SHOWN_MS } from '../test/support/real-use-trial.ts';

/** How far back the emulator knows their use. */
export const PAST_MS = 28 * DAY;

/** The timeouts that computes have, in seconds; those of Launch are never or five minutes, of Free five minutes. */
const TIMEOUTS: Readonly<Record<AccountPlan, readonly number[]>> = {
  scale: [300, 3600, -1, 900],
  launch: [-1, 300],
  free: [300],
};

/** The databases of a seed, 12 of each kind, as computes of their own projects, with their uses from four weeks ago to a month ahead. */
export function projectsOf(seed: number, plan: AccountPlan, nowMs: number): FleetProject[] {
  // Databases are used by clock hours, as those that they are drawn after.
  const hourMs = nowMs - (nowMs % HOUR);
  const databases = (['serverless', 'provisioned'] as const).flatMap((kind) => drawRealFleet(seed, kind).slice(-12));
  return databases.map(({ activities, isVisible }, index) => {
    const seconds = TIMEOUTS[plan][index % TIMEOUTS[plan].length] ?? 300;
    const points = activities.flatMap(({ fromMs, toMs }) => [
      { atMs: fromMs - SHOWN_MS + hourMs, cu: isVisible ? 1.6 : 0.2 },
      { atMs: toMs - SHOWN_MS + hourMs, cu: 0 },
    ]);
    const name = `db-${index}`;
    return {
      ...{ id: name, name, account: 'a', regionId: 'aws-eu-central-1', pgVersion: 17, plan },
      computes: [
        {
          ...{ id: `ep-${name}`, branchId: `br-${name}`, type: 'read_write', minCu: 1, maxCu: 2, connections: 0 },
          ...{ suspendTimeoutSeconds: seconds, state: seconds === -1 ? 'active' : 'idle' },
          load: [{ class: 'trace', points }],
        },
      ],
    };
  });
}
