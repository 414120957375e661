import { readFleet } from '../../app/fleet/read-fleet.ts';
import { addOperations, readOperations } from '../../app/fleet/read-operations.ts';
import { organizationsOf } from '../../app/usage/usage-account.ts';
import type { Reading } from '../../compose/reading.ts';
import { awakeHistory } from '../../domain/awake/intervals.ts';
import { createOperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute, ComputeSettings } from '../../domain/compute/compute.ts';
import type { Range } from '../../domain/estimate.ts';
import { useInHour, widestSettings } from '../../domain/forecast/expected.ts';
import { replayTimeouts } from '../../domain/recommend/other-timeouts.ts';
import { sum } from '../../domain/sum.ts';
import { overlaps, type Span } from '../../domain/time/span.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import { withReading } from '../read-fleet.ts';
import { SETTINGS_BEFORE } from './platform.ts';
import { DAY_ENDS_MS, DAY_STARTS_MS } from './working-day.ts';

/** The settings that a compute had, oldest first. */
type SettingsHistory = readonly (ComputeSettings & Span)[];

/** The usage and the saving of a day, in CU-hours. */
export interface MeasuredDay {
  used: number;
  /** The saving: each measured hour replayed with the settings from before the day. */
  saved: Range;
}

/** Measures the day by the control API's CU-seconds by hour, and by the times when computes were awake. */
export async function measureDay(
  settings: Settings,
  historyOf: (computeId: string) => SettingsHistory,
): Promise<MeasuredDay> {
  return withReading({ settings, live: true }, async (reading) => {
    const fleet = await readFleet({ api: reading.api, readBranches: false });
    const hours = await readHours(reading, fleet.projects, settings);
    const eventsOf = await readEvents(reading, fleet.projects);
    const day = { used: 0, saved: { low: 0, high: 0 } };
    for (const compute of fleet.computes) {
      const before = SETTINGS_BEFORE.get(compute.computeId) ?? compute;
      const hoursOfProject = hours.get(compute.projectId) ?? new Map();
      const without = replayDay({
        compute,
        before,
        had: historyOf(compute.computeId),
        hours: hoursOfProject,
        events: eventsOf(compute),
      });
      const used = sum([...hoursOfProject.values()]) / 3600;
      day.used += used;
      day.saved.low += without.low - used;
      day.saved.high += without.high - used;
    }
    return day;
  });
}

interface ReplayInput {
  compute: Compute;
  /** The settings before the day. */
  before: ComputeSettings;
  had: SettingsHistory;
  /** CU-seconds by the start of the hour; a missing hour had no usage. */
  hours: ReadonlyMap<number, number>;
  events: Parameters<typeof awakeHistory>[0];
}

/** The day's usage in CU-hours if the compute had kept its settings from before the day. */
function replayDay({ compute, before, had, hours, events }: ReplayInput): Range {
  const without = { low: 0, high: 0 };
  for (let startMs = DAY_STARTS_MS; startMs < DAY_ENDS_MS; startMs += HOUR_MS) {
    const hour = { fromMs: startMs, toMs: startMs + HOUR_MS };
    const [first = before, ...others] = had.filter((settings) => overlaps(settings, hour));
    const widest = others.reduce(widestSettings, first);
    const use = useInHour((hours.get(startMs) ?? 0) / 3600, widest, before);
    without.low += use.low;
    without.high += use.high;
  }
  const history = awakeHistory(events, { fromMs: DAY_STARTS_MS, toMs: DAY_ENDS_MS, present: compute });
  const unchanged = [{ ...before, fromMs: DAY_STARTS_MS, toMs: Number.POSITIVE_INFINITY }];
  for (const { savedMs } of replayTimeouts(history, had, unchanged)) {
    // A compute that waits for its timeout has no load, so it has its minimum size.
    without.low -= (savedMs.high / HOUR_MS) * before.minCu;
    without.high -= (savedMs.low / HOUR_MS) * before.minCu;
  }
  return without;
}

type Projects = Awaited<ReturnType<typeof readFleet>>['projects'];

async function readHours({ api, explain }: Reading, projects: Projects, { accounts }: Settings) {
  const hours = new Map<string, Map<number, number>>();
  for (const organization of organizationsOf(projects, accounts)) {
    const asked = { level: 'projects', granularity: 'hourly', metrics: ['compute_unit_seconds'] } as const;
    const answer = await api.usage({ ...organization, ...asked, fromMs: DAY_STARTS_MS, toMs: DAY_ENDS_MS });
    if (!answer.ok) throw new UserError(explain(answer.error));
    for (const { projectId, buckets } of answer.value.units) {
      hours.set(projectId, new Map([...buckets].map(([ms, { compute_unit_seconds: used = 0 }]) => [ms, used])));
    }
  }
  return hours;
}

async function readEvents({ api }: Reading, projects: Projects) {
  const log = createOperationLog();
  await readOperations({
    api,
    projects,
    sinceMs: DAY_STARTS_MS,
    nowMs: DAY_ENDS_MS,
    monotonicMs: () => performance.now(),
    onPage(projectId, operations) {
      addOperations(log.project(projectId), operations);
    },
  });
  return ({ projectId, computeId }: Compute) => log.project(projectId).eventsOf(computeId);
}
