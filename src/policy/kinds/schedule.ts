import { z } from 'zod';
import type * as domain from '../../domain/policy/kinds/schedule.ts';
import type * as domainWindow from '../../domain/policy/schedule-window.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import { POLICY_LIMITS } from '../limits.ts';
import type { Path } from '../read-yaml.ts';
import { policyBase } from '../schema/policy-base.ts';
import { duration, expected, mapping, Size, SuspendAfter } from '../schema/scalars.ts';
import { At } from '../schema/time.ts';
import { resolveTime } from '../time-text.ts';
import { type FileContext, toBase, toDateFilter } from '../to-domain.ts';
import { kindSyntax, type WrittenSetting } from './kind.ts';

const values = { size: Size.optional(), suspend_after: SuspendAfter.optional() };
const OTHERWISE = '"leave", "baseline", or values such as {size: 0.25, suspend_after: 5m}';

const READY = 'true, false, or a lead of 1m to 30m such as "10m"';
const CalendarNames = z
  .array(z.string(expected('the name of a calendar')), expected('a list of calendars'))
  .min(1, 'expected at least one calendar');

const hasValue = (value: { size?: unknown; suspend_after?: unknown }) =>
  value.size !== undefined || value.suspend_after !== undefined;

const ScheduleWindow = mapping({
  at: At,
  ...values,
  only: CalendarNames.describe('Starts on dates of any of these calendars only.').optional(),
  except: CalendarNames.describe('Does not start on dates of any of these calendars.').optional(),
  ready: z
    .union([z.boolean(), duration({ minMs: MINUTE_MS, maxMs: 30 * MINUTE_MS, text: '1m to 30m' })], expected(READY))
    .describe(
      'Makes raises before the start: early enough for the whole fleet under the rate limit, or by the given duration.',
    )
    .optional(),
})
  .refine(hasValue, { error: 'a window says what it wants: add size, suspend_after, or both' })
  .refine(
    ({ at, only, except }) =>
      (only === undefined && except === undefined) || at.every(({ kind }) => kind !== 'interval'),
    {
      error: 'an absolute interval names its dates itself; only and except go with recurring times',
      path: ['at'],
    },
  );
type ScheduleWindow = z.infer<typeof ScheduleWindow>;

const Otherwise = z
  .union(
    [
      z.literal(['leave', 'baseline']),
      mapping(values, OTHERWISE).refine(hasValue, { error: 'no values; write "leave" to set nothing' }),
    ],
    expected(OTHERWISE),
  )
  .describe(
    'For each field that no open window sets: values, leave (set nothing), or baseline (what the compute had when ebb first saw it, or what a person has set since).',
  );

const SchedulePolicy = mapping({
  ...policyBase,
  kind: z.literal('schedule').describe('Sets sizes and timeouts by time.'),
  windows: z
    .array(ScheduleWindow, expected('a list of windows, each with at and size or suspend_after'))
    .min(1, 'expected at least one window')
    .max(200, 'a schedule has at most 200 windows')
    .refine((windows) => windows.reduce((sum, { at }) => sum + at.length, 0) <= POLICY_LIMITS.timesOfPolicy, {
      error: `a schedule has at most ${POLICY_LIMITS.timesOfPolicy} times`,
    })
    .describe('Values by time.'),
  otherwise: Otherwise,
});
type SchedulePolicy = z.infer<typeof SchedulePolicy>;

/** The lead of `ready: true` where the wave of a compute is unknown. */
const LEAD_WITHOUT_WAVES_MS = 3 * MINUTE_MS;

function toSchedule(policy: SchedulePolicy, context: FileContext): domain.SchedulePolicy {
  return {
    kind: 'schedule',
    ...toBase(policy, context),
    windows: policy.windows.map((window) => toWindow(window, context)),
    otherwise: typeof policy.otherwise === 'string' ? policy.otherwise : toValues(policy.otherwise),
  };
}

function toWindow(window: ScheduleWindow, context: FileContext): domainWindow.ScheduleWindow {
  const dates = toDateFilter(window, context);
  const readyLeadMs = window.ready === true ? LEAD_WITHOUT_WAVES_MS : window.ready || undefined;
  return {
    at: window.at.map((time) => resolveTime(time, context.timezone, dates)),
    ...toValues(window),
    ...(readyLeadMs !== undefined && { readyLeadMs }),
    ...(window.ready === true && { readyInWaves: true as const }),
  };
}

function toValues({
  size,
  suspend_after,
}: Pick<ScheduleWindow, 'size' | 'suspend_after'>): domainWindow.ScheduleValues {
  return { ...(size && { size }), ...(suspend_after !== undefined && { suspendTimeoutSeconds: suspend_after }) };
}

function settingsOf(policy: domain.SchedulePolicy): WrittenSetting[] {
  const settings: WrittenSetting[] = [];
  for (const { values, at } of valuesOf(policy)) {
    const { size, suspendTimeoutSeconds: seconds } = values;
    if (size) settings.push({ field: 'size', at: [...at, 'size'], maxCu: size.maxCu });
    if (seconds === undefined) continue;
    settings.push({ field: 'suspend_after', at: [...at, 'suspend_after'], minSeconds: seconds, maxSeconds: seconds });
  }
  return settings;
}

/** Values that a schedule wants, with their place in the policy. */
export interface PlacedValues {
  values: domainWindow.ScheduleValues;
  at: Path;
}

/** The values of each window, and of `otherwise`. */
export function valuesOf({ windows, otherwise }: domain.SchedulePolicy): PlacedValues[] {
  const placed: PlacedValues[] = windows.map((window, index) => ({ values: window, at: ['windows', index] }));
  return typeof otherwise === 'string' ? placed : [...placed, { values: otherwise, at: ['otherwise'] }];
}

export const scheduleSyntax = kindSyntax({
  schema: SchedulePolicy,
  toDomain: toSchedule,
  times: ({ windows }) => windows.map((window, index) => ({ specs: window.at, at: ['windows', index, 'at'] })),
  settings: settingsOf,
  onlyRaises: false,
});
