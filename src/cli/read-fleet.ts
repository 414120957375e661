import { missingParts } from '../app/fleet/missing-parts.ts';
import { type FleetReading, readFleet } from '../app/fleet/read-fleet.ts';
import { type ForecastStart, noteOf } from '../app/situation/read-situation.ts';
import { readPlans } from '../app/usage/project-periods.ts';
import { openForReading, type Reading, type ReadingOptions } from '../compose/reading.ts';
import { readForForecast } from '../compose/situation.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import type { Settings } from '../settings/settings.ts';
import { orFail, UserError } from './fail.ts';
import type { CommonFlags } from './flags.ts';
import { withProgress } from './past/progress.ts';

/** Opens the fleet for the duration of some work. Throws a UserError if it can't be opened. */
export async function withReading<T>(options: ReadingOptions, work: (reading: Reading) => Promise<T>): Promise<T> {
  const reading = orFail(await openForReading(options));
  try {
    return await work(reading);
  } finally {
    await reading.close();
  }
}

export interface ReadFleet extends Omit<FleetReading, 'errors'> {
  /** One line for each part that could not be read. */
  missing: string[];
  /** What the user must know about the data, one line each. */
  notes: string[];
  /** The plans of the accounts; absent unless requested. */
  plans?: ReadonlySet<AccountPlan>;
}

interface ReadFleetOptions extends ReadingOptions {
  /** Reads the names and roles of branches, which costs a request for each project. */
  readBranches: boolean;
  /** Accepts parts of the fleet that can't be read, as long as some project can. */
  acceptsMissing: boolean;
  /** Reads the plans of the accounts, which costs a request for each. */
  needsPlans?: boolean;
}

/** Reads the whole fleet, and shows progress on a terminal. Throws a UserError for missing parts that are not accepted. */
export async function readFleetOrFail(options: ReadFleetOptions): Promise<ReadFleet> {
  const { readBranches, acceptsMissing, needsPlans, ...source } = options;
  return withReading(source, async (reading) => {
    const { api, explain } = reading;
    const { errors, ...fleet } = await withProgress((progress) =>
      readFleet({ api, readBranches, onProgress: progress.fleet }),
    );
    const missing = missingParts(errors, { explain, projects: fleet.unread });
    const isAccepted = acceptsMissing && fleet.projects.length > 0;
    if (missing.length > 0 && !isAccepted) throw new UserError(missing.join('\n'));
    const plans = needsPlans ? await readPlans({ api, projects: fleet.projects, isKnown: () => false }) : undefined;
    return { ...fleet, missing, notes: noteOf(reading), ...(plans && { plans: new Set(plans.values()) }) };
  });
}

/** The fleet at the start of a forecast, with progress on a terminal. */
export async function readForecastStart(
  settings: Settings,
  { fleet: fleetFile, live }: CommonFlags,
  { selectsByBranch, nowMs }: { selectsByBranch: boolean; nowMs: number },
): Promise<ForecastStart> {
  const read = await withProgress(({ fleet: onProgress }) =>
    readForForecast({ settings, fleetFile, live, selectsByBranch, nowMs, onProgress }),
  );
  return orFail(read);
}
