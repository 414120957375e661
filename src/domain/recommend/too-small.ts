/** The finding for a lowering that a guard found harmful. Proposes the larger size in a window around the harm, or the longer timeout. */

import { type ComputeSettings, fieldsOf, type Size, sizeOf } from '../compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../compute/compute-units.ts';
import { type Estimate, mapEstimate, ZERO } from '../estimate.ts';
import { fieldsJson } from '../evaluate/fleet-plan-json.ts';
import { isLower } from '../records/lowerings.ts';
import { quantile } from '../sorted.ts';
import type { Span } from '../time/span.ts';
import { DAY_MINUTES, DAY_MS, HOUR_MS, isoInstant, MINUTE_MS, WEEK_MS } from '../time/units.ts';
import { localDayAt, offsetMsAt, weekdayOf } from '../time/windows/local-time.ts';
import type { UsageBucket } from '../usage/usage.ts';
import { type HarmFacts, type PolicyDraft, type RecommendFacts, stayAwake, type Unpriced } from './finding.ts';
import { settingsAbove } from './floor-cost.ts';
import { clockText, DAY_NAMES, windowText } from './hours-of-use.ts';
import { type SettingsOverTime, savingBetween, savingOf } from './saving.ts';
import type { UseWindow } from './windows.ts';

/** Hours with at least this share of the usage at the time of the harm need the larger size, too. */
const AS_BUSY = 0.5;

/** A longer run of lower settings is narrowed to the busy hours. */
const LONG_RUN_MS = 3 * HOUR_MS;

export function tooSmall(facts: RecommendFacts): Unpriced | undefined {
  const { harm } = facts;
  if (!harm) return undefined;
  const { guard, from, to, badSinceMs } = harm.finding;
  const size = fieldsOf('size', from) as Size | undefined;
  const lowered = fieldsOf('size', to) as Size | undefined;
  if (!size || !lowered) return tooShort(harm, guard);
  const window = windowOf(facts, harm, size);
  const when = window
    ? ` on ${daysText(window.days)} ${clockText(window.startMinute)}–${clockText(window.endMinute)}`
    : '';
  const inWindow = window ? insideOf(window, harm.policy.zone) : () => true;
  return {
    finding: 'guard',
    figure: 'estimate',
    now: fieldsJson(lowered),
    proposed: fieldsJson(size),
    savesCuHours: savedAgainstNow(facts, harm, (rule, atMs) => (inWindow(atMs) ? settingsAbove(rule, from) : rule)),
    evidence: [
      `${formatSize(lowered)} CU was too small${when}, by guard ${guard}`,
      `bad since ${isoInstant(badSinceMs)}, after ${harm.policy.name} had lowered it`,
    ],
    risk: 'only what the guard saw is known: other hours may need the size, too',
    policy: windowPolicy(harm, window, size),
  };
}

function windowPolicy({ policy }: HarmFacts, window: UseWindow | undefined, size: Size): PolicyDraft {
  const at = window ? windowText(window) : 'Mon-Sun 00:00-24:00';
  return {
    name: `size-${formatSize(size)}`,
    body: {
      kind: 'schedule',
      priority: policy.priority + 1,
      windows: [{ at, size: formatSize(size) }],
      otherwise: 'leave',
    },
    zone: policy.zone,
  };
}

function tooShort(harm: HarmFacts, guard: string): Unpriced | undefined {
  const { from, to, badSinceMs } = harm.finding;
  const [before, after] = [from.suspendTimeoutSeconds, to.suspendTimeoutSeconds];
  if (before === undefined || after === undefined) return undefined;
  return {
    finding: 'guard',
    figure: 'estimate',
    now: { suspend_timeout_seconds: after },
    proposed: { suspend_timeout_seconds: before },
    savesCuHours: ZERO,
    evidence: [
      `suspend_after ${formatSuspendTimeout(after)} was too short, by guard ${guard}`,
      `bad since ${isoInstant(badSinceMs)}, after ${harm.policy.name} had lowered it`,
    ],
    risk: 'it is awake longer',
    policy: stayAwake(formatSuspendTimeout(before)),
  };
}

/** The saving of the proposal in CU-hours a month, against the policies with their floors; negative if it costs more. */
function savedAgainstNow(
  { compute, history, hours }: RecommendFacts,
  { floors, rulesBetween }: HarmFacts,
  proposedAt: (rule: ComputeSettings, atMs: number) => ComputeSettings,
): Estimate {
  const evidence = { compute, had: compute, hours, history };
  const rules = hourly(rulesBetween(history.fromMs, history.toMs));
  const fields = { ...floors.size?.fields, ...floors.suspend_timeout?.fields };
  const savedInMonth = (settingsAt: (rule: ComputeSettings, atMs: number) => ComputeSettings) =>
    savingOf({
      evidence,
      rules: rules.map((rule) => ({ ...rule, ...settingsAt(rule, rule.fromMs) })),
      priceAt: () => undefined,
    })?.month.saved;
  const [now, proposed] = [savedInMonth((rule) => settingsAbove(rule, fields)), savedInMonth(proposedAt)];
  return now && proposed ? mapEstimate(savingBetween(now, proposed).cuSeconds, (value) => value / 3600) : ZERO;
}

/** The same rules, cut at each hour, so that a rule is inside or outside of a window. */
function hourly(rules: SettingsOverTime): SettingsOverTime {
  return rules.flatMap(({ fromMs, toMs, ...settings }) => {
    const parts: (ComputeSettings & Span)[] = [];
    for (let atMs = fromMs; atMs < toMs; ) {
      const nextMs = Math.min(toMs, (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS);
      parts.push({ ...settings, fromMs: atMs, toMs: nextMs });
      atMs = nextMs;
    }
    return parts;
  });
}

/** The window of lower sizes in which the harm happened, on all weekdays that have the same window; undefined if it lasts a day or longer. */
function windowOf({ hours = [] }: RecommendFacts, harm: HarmFacts, size: Size): UseWindow | undefined {
  const { badSinceMs } = harm.finding;
  const { zone } = harm.policy;
  const runs = lowerRuns(harm.rulesBetween(badSinceMs - WEEK_MS, badSinceMs + WEEK_MS), size);
  const harmed = runs.find(({ fromMs, toMs }) => fromMs <= badSinceMs && badSinceMs < toMs);
  if (!harmed || harmed.toMs - harmed.fromMs >= DAY_MS) return undefined;
  const start = minuteOf(zone, harmed.fromMs);
  const lengthMs = harmed.toMs - harmed.fromMs;
  const alike = runs.filter((run) => minuteOf(zone, run.fromMs) === start && run.toMs - run.fromMs === lengthMs);
  const days = [...new Set(alike.map(({ fromMs }) => weekdayOf(localDayAt(zone, fromMs))))].toSorted((a, b) => a - b);
  const { fromMs, toMs } = lengthMs > LONG_RUN_MS ? busyPart(harmed, alike, { hours, badSinceMs }) : harmed;
  const startMinute = minuteOf(zone, fromMs);
  return { days, startMinute, endMinute: startMinute + Math.round((toMs - fromMs) / MINUTE_MS) };
}

/** The spans in which the rules give less than the size. */
function lowerRuns(rules: SettingsOverTime, size: Size): Span[] {
  const runs: Span[] = [];
  for (const rule of rules) {
    if (!isLower(sizeOf(rule), size)) continue;
    const last = runs.at(-1);
    if (last?.toMs === rule.fromMs) last.toMs = rule.toMs;
    else runs.push({ fromMs: rule.fromMs, toMs: rule.toMs });
  }
  return runs;
}

/** The hours around the harm that are about as busy as its own hour, by the median over `alike`; the whole run if the usage is unknown. */
function busyPart(
  run: Span,
  alike: readonly Span[],
  { hours, badSinceMs }: { hours: readonly UsageBucket[]; badSinceMs: number },
): Span {
  const used = new Map(hours.flatMap(({ startMs, cuSeconds }) => (cuSeconds === null ? [] : [[startMs, cuSeconds]])));
  const count = Math.ceil((run.toMs - run.fromMs) / HOUR_MS);
  const medianOf = (index: number) =>
    quantile(
      alike.flatMap(({ fromMs }) => used.get(Math.floor((fromMs + index * HOUR_MS) / HOUR_MS) * HOUR_MS) ?? []),
      0.5,
    );
  const harmHour = Math.floor((badSinceMs - run.fromMs) / HOUR_MS);
  const level = medianOf(harmHour);
  if (level === undefined || level === 0) return run;
  const isBusy = (index: number) => index >= 0 && index < count && (medianOf(index) ?? 0) >= AS_BUSY * level;
  let [first, last] = [harmHour, harmHour];
  while (isBusy(first - 1)) first -= 1;
  while (isBusy(last + 1)) last += 1;
  return { fromMs: run.fromMs + first * HOUR_MS, toMs: Math.min(run.toMs, run.fromMs + (last + 1) * HOUR_MS) };
}

function insideOf({ days, startMinute, endMinute }: UseWindow, zone: string): (atMs: number) => boolean {
  return (atMs) => {
    const minute = minuteOf(zone, atMs);
    const day = weekdayOf(localDayAt(zone, atMs));
    const yesterday = ((day + 5) % 7) + 1;
    const isToday = days.includes(day) && minute >= startMinute && minute < endMinute;
    return isToday || (days.includes(yesterday) && minute < endMinute - DAY_MINUTES);
  };
}

/** The minute of the local day. */
function minuteOf(zone: string, atMs: number): number {
  return Math.floor((atMs + offsetMsAt(zone, atMs) - localDayAt(zone, atMs) * DAY_MS) / MINUTE_MS);
}

function daysText(days: readonly number[]): string {
  const key = days.join('');
  if (key === '12345') return 'weekdays';
  if (key === '67') return 'weekends';
  return key === '1234567' ? 'all days' : days.map((day) => DAY_NAMES[day - 1]).join(', ');
}
