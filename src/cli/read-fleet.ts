import { type FleetReading, readFleet } from '../app/fleet/read-fleet.ts';
import { openForReading, type Reading } from '../compose/reading.ts';
import type { Settings } from '../settings.ts';
import { UserError } from './fail.ts';
import { showProgress } from './past/progress.ts';

export interface ReadFleet extends Omit<FleetReading, 'errors'> {
  /** What could not be read, one line each. */
  missing: string[];
}

/**
 * Reads the whole fleet from the control API, and shows progress on a terminal. Throws a UserError where a part of the fleet
 * can't be read, unless `partial` allows that and there is another part.
 */
export async function readFleetOrFail(settings: Settings, { partial }: { partial: boolean }): Promise<ReadFleet> {
  const opened = await openForReading({ settings });
  if (!opened.ok) throw new UserError(opened.problem);
  const progress = showProgress(process.stderr);
  try {
    const fleet = await readFleet({ api: opened.value.api, readBranches: true, onProgress: progress.fleet });
    progress.end();
    return evaluate(fleet, opened.value, partial);
  } finally {
    progress.end();
    await opened.value.close();
  }
}

function evaluate({ errors, ...fleet }: FleetReading, reading: Reading, partial: boolean): ReadFleet {
  const missing = [...new Set(errors.map((error) => reading.explain(error)))];
  if (missing.length > 0 && !(partial && fleet.projects.length > 0)) throw new UserError(missing.join('\n'));
  return { ...fleet, missing };
}

/** The fleet of a fleet file. */
export async function readFleetFile(settings: Settings, fleetFile: string, nowMs: number): Promise<FleetReading> {
  const opened = await openForReading({ settings, fleetFile, nowMs });
  if (!opened.ok) throw new UserError(opened.problem);
  return readFleet({ api: opened.value.api, readBranches: true });
}
