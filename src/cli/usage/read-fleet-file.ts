import { type FleetReading, readFleet } from '../../app/fleet/read-fleet.ts';
import { openForReading } from '../../compose/reading.ts';
import type { Settings } from '../../settings.ts';
import { UserError } from '../fail.ts';

/** The fleet of a fleet file. */
export async function readFleetFile(settings: Settings, fleetFile: string, nowMs: number): Promise<FleetReading> {
  const opened = await openForReading({ settings, fleetFile, nowMs });
  if (!opened.ok) throw new UserError(opened.problem);
  return readFleet({ api: opened.value.api, readBranches: true });
}
