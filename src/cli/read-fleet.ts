import { type FleetReading, readFleet } from '../app/fleet/read-fleet.ts';
import { noteOf } from '../app/situation/read-situation.ts';
import { readPlans } from '../app/usage/project-periods.ts';
import { openForReading, type Reading } from '../compose/reading.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import type { Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import { withProgress } from './past/progress.ts';

export interface ReadFleet extends Omit<FleetReading, 'errors'> {
  /** One line for each part that could not be read. */
  missing: string[];
  /** One line for each thing that the reader must know. */
  notes: string[];
  /** The plans of the accounts, where they were asked for, one request an account. */
  plans?: ReadonlySet<AccountPlan>;
}

/**
 * Reads the whole fleet, and shows progress on a terminal. Throws a UserError where a part of the fleet
 * can't be read, unless `partial` allows that and there is another part.
 */
export async function readFleetOrFail(
  settings: Settings,
  { partial, live, plans = false }: { partial: boolean; live: boolean | undefined; plans?: boolean },
): Promise<ReadFleet> {
  const opened = await openForReading({ settings, live });
  if (!opened.ok) throw new UserError(opened.problem);
  const { api } = opened.value;
  try {
    const reading = await withProgress(({ fleet }) => readFleet({ api, readBranches: true, onProgress: fleet }));
    const fleet = evaluate(reading, opened.value, partial);
    if (!plans) return fleet;
    const found = await readPlans({ api, projects: fleet.projects, isKnown: () => false });
    return { ...fleet, plans: new Set(found.values()) };
  } finally {
    await opened.value.close();
  }
}

function evaluate({ errors, ...fleet }: FleetReading, reading: Reading, partial: boolean): ReadFleet {
  const missing = [...new Set(errors.map((error) => reading.explain(error)))];
  if (missing.length > 0 && !(partial && fleet.projects.length > 0)) throw new UserError(missing.join('\n'));
  return { ...fleet, missing, notes: noteOf(reading) };
}

/** The fleet of a fleet file. */
export async function readFleetFile(settings: Settings, fleetFile: string, nowMs: number): Promise<FleetReading> {
  const opened = await openForReading({ settings, fleetFile, nowMs });
  if (!opened.ok) throw new UserError(opened.problem);
  return readFleet({ api: opened.value.api, readBranches: true });
}
