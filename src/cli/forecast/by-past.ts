import { operationsOfFew, plansOf } from '../../app/situation/fleet-usage.ts';
import type { ForecastStart } from '../../app/situation/read-situation.ts';
import { counted } from '../../common/names.ts';
import { projectsWithoutPlan, withUsageSources } from '../../compose/situation.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import { type Compute, hasSettings, settingsOf } from '../../domain/compute/compute.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { needsAwakeTimes } from '../../domain/recommend/saving.ts';
import { ageText } from '../../domain/time/age.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Settings } from '../../settings/settings.ts';
import type { CommonFlags } from '../flags.ts';
import { writeErrLine } from '../output.ts';
import { operationsReadLately } from '../past/pages-journal.ts';
import { foresee, type Outlook } from './outlook.ts';
import { type LookBackInput, type PastOutlook, type Pricing, withPast } from './past-outlook.ts';
import {
  historiesOf,
  type OpenSources,
  readUsageHistories,
  SAVING_DAYS,
  type UsageHistoryOptions,
} from './usage-history.ts';

/** Operations are requested for at most this many projects, about a request each. If more projects need them, none are requested. */
const MAX_PROJECTS_ASKED = 50;
/**
 * Usage is requested for at most this many projects, which take about 25 requests: all that ebb sends to the usage routes in a minute. A larger
 * fleet has only the usage that daemons have collected, or that commands have cached.
 */
const MAX_PROJECTS_OF_USAGE = 500;

interface ByPastOptions extends Omit<UsageHistoryOptions, 'open' | 'mostProjectsAsked'> {
  /** True if the fleet comes from the store of daemons. Usage and operations are then not read from the control API either. */
  isStored: boolean;
  /** Reads usage anew, instead of using answers of the control API that commands have cached. */
  live?: boolean | undefined;
}

type PastInputs = Pick<LookBackInput, 'usages' | 'pricing' | 'pastEndMs'>;

/**
 * Calls `forecast` with the known usage; it returns outlooks of the computes for each policy set. Where a saving depends on when a compute was
 * awake ({@link needsHistory}), this is then read from operations, and added to the outlook.
 */
export function forecastWithUsage<O extends PastOutlook>(
  options: ByPastOptions,
  forecast: (known: PastInputs) => readonly O[][],
): Promise<readonly O[][]> {
  const { settings, fleetFile, nowMs, isStored, live } = options;
  const mostProjectsAsked = isStored ? 0 : MAX_PROJECTS_OF_USAGE;
  return withUsageSources({ settings, live, needsFleet: false }, async (open) => {
    const usages = await readUsageHistories({ ...options, open, mostProjectsAsked });
    // With a fleet file, operations come from a file or not at all.
    if (fleetFile !== undefined) return forecast({ usages, pricing: settings });
    const forecasts = forecast({ usages, pricing: await pricingOf(options, open), pastEndMs: nowMs });
    const incomplete = forecasts.flat().filter(needsHistory);
    const computes = [...new Map(incomplete.map(({ compute }) => [compute.computeId, compute])).values()];
    const histories = computes.length > 0 ? await readHistories(computes, options, open) : new Map();
    return forecasts.map((outlooks) =>
      outlooks.map((outlook) => {
        const history = histories.get(outlook.compute.computeId);
        return history && outlook.past ? withPast(outlook, { ...outlook.past, history }) : outlook;
      }),
    );
  });
}

/** Adds to the settings the plans that daemons or the API report for accounts without a plan. */
async function pricingOf({ settings, projects, isStored }: ByPastOptions, open: OpenSources): Promise<Pricing> {
  const withoutPlan = projectsWithoutPlan(settings, projects);
  const sources = withoutPlan.length > 0 ? await open() : undefined;
  return sources?.ok
    ? { ...settings, plans: await plansOf(sources.value, { projects: withoutPlan, mayAsk: !isStored }) }
    : settings;
}

/** Forecasts of the same computes for each policy set. */
export function forecastEach(
  policySets: readonly CompiledPolicies[],
  start: ForecastStart,
  options: { settings: Settings; flags: CommonFlags; span: Span; subjects: readonly ForecastSubject[]; nowMs: number },
): Promise<readonly Outlook[][]> {
  const { settings, flags, span, subjects, nowMs } = options;
  const files = { usageFile: flags.usage, operationsFile: flags.operations, fleetFile: flags.fleet, live: flags.live };
  const computes = start.subjects.map(({ compute }) => compute);
  const { disruption } = settings;
  const { knownAtMs, subjects: fleet } = start;
  return forecastWithUsage({ ...start, ...files, settings, computes, nowMs }, (known) =>
    policySets.map((policies) => foresee({ ...span, ...known, knownAtMs, policies, subjects, fleet, disruption })),
  );
}

/** Reads when computes were awake. A note counts the projects for which that is unknown. */
async function readHistories(
  computes: readonly Compute[],
  { projects, nowMs, isStored, settings: { stateDir, apiUrl, group } }: ByPastOptions,
  open: OpenSources,
): Promise<ReadonlyMap<string, AwakeHistory>> {
  const projectIds = new Set(computes.map(({ projectId }) => projectId));
  const sources = await open();
  const lately = await operationsReadLately({ folder: stateDir, asked: { apiUrl, group }, nowMs });
  const read = sources.ok
    ? await operationsOfFew(sources.value, {
        projects: projects.filter(({ projectId }) => projectIds.has(projectId)),
        nowMs,
        sinceMs: nowMs - SAVING_DAYS * DAY_MS,
        monotonicMs: () => performance.now(),
        mostProjectsAsked: isStored ? 0 : MAX_PROJECTS_ASKED,
        readLately: lately?.operations,
      })
    : undefined;
  if (lately && [...(read?.storedAtMs.values() ?? [])].includes(lately.readAtMs)) {
    writeErrLine(`note: operations as of ${ageText(lately.readAtMs, nowMs)}, as awake, recommend or report read them`);
  }
  const unread = read?.unread ?? projectIds.size;
  if (unread > 0) {
    const how = isStored
      ? 'daemons read them within some minutes of their start'
      : 'ebb recommend reads them, for a day';
    writeErrLine(
      `note: operations of ${counted(unread, 'project')} are not known; ${how}, or --operations FILE (ebb usage export)`,
    );
  }
  return read ? historiesOf(computes, { ...read, toMs: nowMs }) : new Map();
}

/** True if policies change the timeout of a compute that sleeps, or anything of a compute whose usage is unknown. */
function needsHistory({ past }: PastOutlook): boolean {
  if (!past || past.history) return false;
  const { had, rules, hours = [] } = past;
  const hasKnownHours = hours.some(
    ({ startMs, cuSeconds }) => cuSeconds !== null && startMs >= (rules[0]?.fromMs ?? 0),
  );
  return hasKnownHours ? needsAwakeTimes(had, rules) : rules.some((rule) => !hasSettings(had, settingsOf(rule)));
}
