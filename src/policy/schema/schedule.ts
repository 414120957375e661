import { z } from 'zod';
import { expected, mapping, notSupported } from './expected.ts';
import { policyBase } from './policy-base.ts';
import { Size } from './size.ts';
import { SuspendAfter } from './suspend-after.ts';
import { At } from './time.ts';

const values = { size: Size.optional(), suspend_after: SuspendAfter.optional() };
const OTHERWISE = '"leave", "baseline", or values such as {size: 0.25, suspend_after: 5m}';

const saysSomething = (value: { size?: unknown; suspend_after?: unknown }) =>
  value.size !== undefined || value.suspend_after !== undefined;

/** What is wanted while one of the times of `at` is open. */
export const ScheduleWindow = mapping({
  at: At,
  ...values,
  only: notSupported('only is'),
  except: notSupported('except is'),
  ready: notSupported('ready is'),
}).refine(saysSomething, { error: 'a window says what it wants: add size, suspend_after, or both' });
export type ScheduleWindow = z.infer<typeof ScheduleWindow>;

/** What is wanted while no window is open. */
export const Otherwise = z
  .union(
    [
      z.literal(['leave', 'baseline']),
      mapping(values, OTHERWISE).refine(saysSomething, { error: 'no values; write "leave" to have no opinion' }),
    ],
    expected(OTHERWISE),
  )
  .describe('While no window is open: values, leave (no opinion), or baseline (what the compute had at first).');
export type Otherwise = z.infer<typeof Otherwise>;

/** `kind: schedule`: sizes and timeouts by windows of time. */
export const SchedulePolicy = mapping({
  ...policyBase,
  kind: z.literal('schedule').describe('Sizes and timeouts by windows of time.'),
  windows: z
    .array(ScheduleWindow, expected('a list of windows, each with at and size or suspend_after'))
    .min(1, 'expected at least one window')
    .max(200, 'a schedule has at most 200 windows'),
  otherwise: Otherwise,
});
export type SchedulePolicy = z.infer<typeof SchedulePolicy>;
