import { readFleet } from '../../app/fleet/read-fleet.ts';
import { noteOf } from '../../app/situation/read-situation.ts';
import { openForReading } from '../../compose/reading.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import { withProgress } from '../past/progress.ts';

/** The fleet against which policies are checked. */
export interface KnownFleet {
  computes: readonly Compute[];
  /** Those that the key shows; absent if the fleet comes from a file. */
  projects?: readonly Pick<Compute, 'account' | 'projectId'>[];
  /** Projects whose branches the key may not list. */
  branchNamesRefused: readonly string[];
  /** One line for each thing that the reader must know. */
  notes: readonly string[];
  /** One line for each part of the fleet that could not be read. */
  missing: readonly string[];
}

/** Reads the fleet, from a file or from the control API. Throws a UserError if nothing of it can be read. */
export async function readKnownFleet(options: {
  settings: Settings;
  fleetFile: string | undefined;
  live: boolean | undefined;
  selectsByBranch: boolean;
  nowMs: number;
}): Promise<KnownFleet> {
  const opened = await openForReading(options);
  if (!opened.ok) throw new UserError(opened.problem);
  const { api, explain, close } = opened.value;
  try {
    const { projects, computes, branchNamesRefused, errors } = await withProgress(({ fleet }) =>
      readFleet({ api, readBranches: options.selectsByBranch, onProgress: fleet }),
    );
    const missing = [...new Set(errors.map(explain))];
    if (projects.length === 0 && missing.length > 0) throw new UserError(missing.join('\n'));
    return {
      computes,
      branchNamesRefused,
      missing,
      notes: noteOf(opened.value),
      ...(options.fleetFile === undefined && { projects }),
    };
  } finally {
    await close();
  }
}
