import type { ForecastStart } from '../../app/situation/read-situation.ts';
import { readOperationsOf, readPlansOf } from '../../compose/situation.ts';
import { hasSettings, settingsOf } from '../../domain/compute/compute.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Settings } from '../../settings/settings.ts';
import { writeErrLine } from '../output.ts';
import { historiesOf, SAVING_DAYS } from './known-usage.ts';
import { type Outlook, type Pricing, withPast } from './outlook.ts';

/** Of more projects only operations that daemons have stored are used: these take about as many requests as there are projects. */
const MOST_PROJECTS_ASKED = 50;

/** Where the fleet of a forecast comes from. */
interface Origin {
  settings: Settings;
  projects: ForecastStart['projects'];
  fleetFile: string | undefined;
  /** As daemons have stored it: then the control API is not asked for more. */
  isStored: boolean;
}

/** The prices of a fleet: by the settings or, where these don't tell the plan, by what ebb knows of it. */
export async function pricingFor({ settings, projects, fleetFile, isStored }: Origin): Promise<Pricing> {
  return fleetFile === undefined ? { ...settings, plans: await readPlansOf(settings, projects, !isStored) } : settings;
}

/**
 * Several forecasts of the same computes, with when these were awake. Operations are only read where a saving depends on them: where
 * policies change the timeout of a compute that sleeps, or anything of one whose usage is unknown.
 */
export async function withHistories(
  forecasts: readonly Outlook[][],
  { settings, projects, nowMs, fleetFile, isStored }: Origin & { nowMs: number },
): Promise<Outlook[][]> {
  const needing = new Map(
    forecasts
      .flat()
      .filter(needsHistory)
      .map(({ compute }) => [compute.computeId, compute]),
  );
  // A fleet file has its operations beside it, or none.
  if (fleetFile !== undefined || needing.size === 0) return [...forecasts];
  const computes = [...needing.values()];
  const inQuestion = new Set(computes.map(({ projectId }) => projectId));
  const read = await readOperationsOf({
    ...{ settings, nowMs, sinceMs: nowMs - SAVING_DAYS * DAY_MS, monotonicMs: () => performance.now() },
    projects: projects.filter(({ projectId }) => inQuestion.has(projectId)),
    mostProjectsAsked: isStored ? 0 : MOST_PROJECTS_ASKED,
  });
  const unread = read?.unread ?? inQuestion.size;
  if (unread > 0) {
    const many = unread === 1 ? '1 project' : `${unread} projects`;
    writeErrLine(`note: operations of ${many} are not known; --operations FILE reads them (ebb usage export)`);
  }
  const histories = read ? historiesOf(computes, { ...read, toMs: nowMs }) : new Map();
  return forecasts.map((outlooks) =>
    outlooks.map((outlook) => {
      const history = histories.get(outlook.compute.computeId);
      return history && outlook.past ? withPast(outlook, { ...outlook.past, history }) : outlook;
    }),
  );
}

function needsHistory({ past, month, had }: Outlook): boolean {
  if (!past || past.history) return false;
  if (month) return month.timeoutsFigure === 'unknown';
  return past.rules.some((rule) => !hasSettings(had, settingsOf(rule)));
}
