import { z } from 'zod';
import { timeoutLength, timeoutOfLength } from '../../domain/compute/compute.ts';
import { impossibleSizeText, isAllowedSize } from '../../domain/compute/compute-units.ts';
import type { Ranges } from '../../domain/policy/directive.ts';
import * as domain from '../../domain/policy/kinds/limits.ts';
import type { Path } from '../read-yaml.ts';
import { SIZE_BOUNDS_PATTERN } from '../schema/patterns.ts';
import { policyBase } from '../schema/policy-base.ts';
import { expected, mapping, SuspendAfter, singleSize } from '../schema/scalars.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { kindSyntax, type WrittenSetting } from './kind.ts';

const SIZES = 'two sizes in CU such as 0.25-1, or {min: 0.25}, {max: 1}';
const RANGE = /^(\d{1,3}(?:\.\d{1,4})?)\s*-\s*(\d{1,3}(?:\.\d{1,4})?)$/;
const bound = singleSize('a size in CU');

const Bounds = mapping(
  { min: bound.describe('The smallest size.').optional(), max: bound.describe('The largest size.').optional() },
  SIZES,
);

/** Unlike an autoscaling range, bounds may have any distance. */
export const SizeBounds = z
  .union(
    [
      z.string().regex(RANGE, `expected ${SIZES}`).meta({ pattern: SIZE_BOUNDS_PATTERN }).transform(toSizeBounds),
      Bounds,
    ],
    expected(SIZES),
  )
  .superRefine(({ min, max }, context) => {
    if (min === undefined && max === undefined) context.addIssue({ code: 'custom', message: `expected ${SIZES}` });
    if (min === undefined || max === undefined || min <= max) return;
    const message = `the minimum, ${min} CU, is above the maximum, ${max} CU; write the smaller one first`;
    context.addIssue({ code: 'custom', message });
  });

export const TimeoutBounds = mapping(
  {
    min: SuspendAfter.describe('The shortest timeout.').optional(),
    max: SuspendAfter.describe('The longest timeout.').optional(),
  },
  'bounds of the timeout such as {max: 5m}, {min: 1m}, or both',
).superRefine(({ min, max }, context) => {
  if (min === undefined && max === undefined)
    context.addIssue({ code: 'custom', message: 'expected min, max, or both' });
  if (min === undefined || max === undefined || timeoutLength(min) <= timeoutLength(max)) return;
  context.addIssue({ code: 'custom', message: 'the minimum is longer than the maximum' });
});

const LimitsPolicy = mapping({
  ...policyBase,
  kind: z.literal('limits').describe('Bounds for schedules.'),
  size: SizeBounds.optional().describe(
    'Bounds of minimum and maximum: 0.25-1, or {min: 0.25, max: 1}, or one of the two.',
  ),
  suspend_after: TimeoutBounds.optional().describe('Bounds of the timeout; never is longer than any other.'),
  hard: z.boolean(expected('true or false')).default(false).describe('Overrides headroom, holds and manual changes.'),
}).refine(({ size, suspend_after }) => size !== undefined || suspend_after !== undefined, {
  error: 'limits nothing: add size, suspend_after, or both',
});
type LimitsPolicy = z.infer<typeof LimitsPolicy>;

function toSizeBounds(text: string, context: z.RefinementCtx<string>): z.infer<typeof Bounds> {
  const [, min, max] = RANGE.exec(text) ?? [];
  const bounds = { min: Number(min), max: Number(max) };
  for (const size of new Set([bounds.min, bounds.max])) {
    if (!isAllowedSize(size)) context.issues.push({ code: 'custom', message: impossibleSizeText(size), input: text });
  }
  return bounds;
}

export function toBounds({
  size,
  suspend_after: timeout,
}: Pick<LimitsPolicy, 'size' | 'suspend_after'>): domain.LimitBounds {
  return {
    ...(size && {
      size: { ...(size.min !== undefined && { minCu: size.min }), ...(size.max !== undefined && { maxCu: size.max }) },
    }),
    ...(timeout && {
      suspendTimeout: {
        ...(timeout.min !== undefined && { minSeconds: timeout.min }),
        ...(timeout.max !== undefined && { maxSeconds: timeout.max }),
      },
    }),
  };
}

function toLimits(policy: LimitsPolicy, context: FileContext): domain.LimitsPolicy {
  return { kind: 'limits', ...toBase(policy, context), ...toBounds(policy), hard: policy.hard };
}

export function writtenBounds({ size, suspend_timeout: timeout }: Ranges, at: Path): WrittenSetting[] {
  const settings: WrittenSetting[] = [];
  if (size) settings.push({ field: 'size', at: [...at, 'size'], maxCu: size.low });
  if (timeout) {
    const [minSeconds, maxSeconds] = [timeoutOfLength(timeout.low), timeoutOfLength(timeout.high)];
    settings.push({ field: 'suspend_after', at: [...at, 'suspend_after'], minSeconds, maxSeconds });
  }
  return settings;
}

export const limitsSyntax = kindSyntax({
  schema: LimitsPolicy,
  toDomain: toLimits,
  times: () => [],
  settings: (policy) => writtenBounds(domain.rangesOf(policy), []),
  onlyRaises: false,
});
