import { operationsOfFew, plansOf } from '../../app/situation/fleet-usage.ts';
import { withoutToldPlan, withUsageSources } from '../../compose/situation.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import { type Compute, hasSettings, settingsOf } from '../../domain/compute/compute.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { writeErrLine } from '../output.ts';
import { historiesOf, type KnownUsageOptions, type OpenSources, readKnownUsage, SAVING_DAYS } from './known-usage.ts';
import { type ForeseeInput, type Outlook, type Pricing, withPast } from './outlook.ts';

/** Of more projects only operations that daemons have stored are used: these take about as many requests as there are projects. */
const MOST_PROJECTS_ASKED = 50;

interface ByPastOptions extends Omit<KnownUsageOptions, 'open'> {
  /** The fleet is as daemons have stored it: then the control API is not asked for more. */
  isStored: boolean;
}

/** What is known of the past before operations are read. */
export type KnownPast = Pick<ForeseeInput, 'usages' | 'pricing' | 'pastEndMs'>;

/**
 * Makes forecasts of the same computes from what is known of their past. Operations are only read where a saving depends on them: where
 * policies change the timeout of a compute that sleeps, or anything of one whose usage is unknown.
 */
export function foreseeByPast(
  options: ByPastOptions,
  forecast: (known: KnownPast) => readonly Outlook[][],
): Promise<readonly Outlook[][]> {
  const { settings, fleetFile, nowMs } = options;
  return withUsageSources(settings, async (open) => {
    const usages = await readKnownUsage({ ...options, open });
    // A fleet file has its operations beside it, or none.
    if (fleetFile !== undefined) return forecast({ usages, pricing: settings });
    const forecasts = forecast({ usages, pricing: await pricingOf(options, open), pastEndMs: nowMs });
    const needing = new Map(
      forecasts
        .flat()
        .filter(needsHistory)
        .map(({ compute }) => [compute.computeId, compute]),
    );
    const histories = needing.size > 0 ? await readHistories([...needing.values()], options, open) : new Map();
    return forecasts.map((outlooks) =>
      outlooks.map((outlook) => {
        const history = histories.get(outlook.compute.computeId);
        return history && outlook.past ? withPast(outlook, { ...outlook.past, history }) : outlook;
      }),
    );
  });
}

/** Prices by the settings or, where these don't tell the plan, by what ebb knows of it. */
async function pricingOf({ settings, projects, isStored }: ByPastOptions, open: OpenSources): Promise<Pricing> {
  const untold = withoutToldPlan(settings, projects);
  const sources = untold.length > 0 ? await open() : undefined;
  return sources?.ok
    ? { ...settings, plans: await plansOf(sources.value, { projects: untold, mayAsk: !isStored }) }
    : settings;
}

/** When computes were awake; a note says of how many projects that is not known. */
async function readHistories(
  computes: readonly Compute[],
  { projects, nowMs, isStored }: ByPastOptions,
  open: OpenSources,
): Promise<ReadonlyMap<string, AwakeHistory>> {
  const inQuestion = new Set(computes.map(({ projectId }) => projectId));
  const sources = await open();
  const read = sources.ok
    ? await operationsOfFew(sources.value, {
        projects: projects.filter(({ projectId }) => inQuestion.has(projectId)),
        ...{ nowMs, sinceMs: nowMs - SAVING_DAYS * DAY_MS, monotonicMs: () => performance.now() },
        mostProjectsAsked: isStored ? 0 : MOST_PROJECTS_ASKED,
      })
    : undefined;
  const unread = read?.unread ?? inQuestion.size;
  if (unread > 0) {
    const many = unread === 1 ? '1 project' : `${unread} projects`;
    writeErrLine(`note: operations of ${many} are not known; --operations FILE reads them (ebb usage export)`);
  }
  return read ? historiesOf(computes, { ...read, toMs: nowMs }) : new Map();
}

function needsHistory({ past, month, had }: Outlook): boolean {
  if (!past || past.history) return false;
  if (month) return month.timeoutsFigure === 'unknown';
  return past.rules.some((rule) => !hasSettings(had, settingsOf(rule)));
}
