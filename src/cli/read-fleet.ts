import { type Survey, type SurveyProgress, surveyFleet } from '../app/fleet/read-fleet.ts';
import { openForReading, type Reading } from '../compose/reading.ts';
import type { Settings } from '../settings.ts';
import { UserError } from './fail.ts';

/** Who waits longer than this is told how far the reading has come, in milliseconds. */
const SILENT_MS = 1_000;

export interface ReadFleet extends Omit<Survey, 'errors'> {
  /** What could not be read, one line each. */
  missing: string[];
}

/**
 * Reads the whole fleet from the control API, and shows progress on a terminal. Throws a UserError where a part of the fleet
 * can't be read, unless `partial` allows that and there is another part.
 */
export async function readFleet(settings: Settings, { partial }: { partial: boolean }): Promise<ReadFleet> {
  const opened = await openForReading({ settings });
  if (!opened.ok) throw new UserError(opened.problem);
  const progress = showProgress(process.stderr);
  try {
    const survey = await surveyFleet({ api: opened.value.api, readBranches: true, onProgress: progress.show });
    progress.end();
    return evaluate(survey, opened.value, partial);
  } finally {
    progress.end();
    await opened.value.close();
  }
}

function evaluate({ errors, ...survey }: Survey, reading: Reading, partial: boolean): ReadFleet {
  const missing = [...new Set(errors.map((error) => reading.explain(error)))];
  if (missing.length > 0 && !(partial && survey.projects.length > 0)) throw new UserError(missing.join('\n'));
  return { ...survey, missing };
}

/** Rewrites one line of a terminal; says nothing elsewhere, where it would only fill a log. */
function showProgress(terminal: NodeJS.WriteStream) {
  const shownFromMs = performance.now() + SILENT_MS;
  let isShown = false;
  return {
    show({ projectsRead, projects, computes }: SurveyProgress) {
      if (terminal.isTTY !== true || performance.now() < shownFromMs) return;
      isShown = true;
      terminal.write(`\r\u001b[Kreading the fleet: ${projectsRead} of ${projects} projects, ${computes} computes`);
    },
    end() {
      if (isShown) terminal.write('\r\u001b[K');
      isShown = false;
    },
  };
}
