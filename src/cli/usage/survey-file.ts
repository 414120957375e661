import { type Survey, surveyFleet } from '../../app/fleet/read-fleet.ts';
import { openForReading } from '../../compose/reading.ts';
import type { Settings } from '../../settings.ts';
import { UserError } from '../fail.ts';

/** The fleet of a fleet file. */
export async function surveyFileOf(settings: Settings, fleetFile: string, nowMs: number): Promise<Survey> {
  const opened = await openForReading({ settings, fleetFile, nowMs });
  if (!opened.ok) throw new UserError(opened.problem);
  return surveyFleet({ api: opened.value.api, readBranches: true });
}
