import { z } from 'zod';
import { FIELD_GROUPS } from '../../domain/compute/compute.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import type * as domain from '../../domain/policy/kinds/budget.ts';
import { rangesOf } from '../../domain/policy/kinds/limits.ts';
import { type BudgetStep, type StepThreshold, stepText } from '../../domain/spend/terms.ts';
import { Disruption, policyBase, ReceiverList } from '../schema/policy-base.ts';
import { expected, mapping } from '../schema/scalars.ts';
import { type FileContext, toBase, toDisruption } from '../to-domain.ts';
import { kindSyntax } from './kind.ts';
import { SizeBounds, TimeoutBounds, toBounds, writtenBounds } from './limits.ts';

const MONTH = 'CU-hours such as "2000 CUh", or dollars such as "$400"';
const CU_HOURS = /^(\d{1,9}(?:\.\d{1,4})?) ?CUh$/;
/** Dollars with at most two decimals; zero matches, too. */
export const DOLLARS = /^\$(\d{1,9}(?:\.\d{1,2})?)$/;

const Month = z
  .string(expected(MONTH))
  .meta({ title: MONTH, pattern: String.raw`^(\d{1,9}(\.\d{1,4})? ?CUh|\$\d{1,9}(\.\d{1,2})?)$` })
  .transform((text, context): domain.BudgetPolicy['month'] => {
    const [cuHours, dollars] = [CU_HOURS.exec(text)?.[1], DOLLARS.exec(text)?.[1]];
    const amount = Number(cuHours ?? dollars);
    if (amount > 0) return { unit: cuHours === undefined ? 'usd' : 'cu_hours', amount };
    context.issues.push({ code: 'custom', message: `expected ${MONTH}`, input: text });
    return z.NEVER;
  });

const THRESHOLD = 'a share of the month such as "80% projected" or "100% spent", up to 999%';
const AT = /^([1-9]\d{0,2})% (projected|spent)$/;

const Threshold = z
  .string(expected(THRESHOLD))
  .regex(AT, `expected ${THRESHOLD}`)
  .meta({ title: THRESHOLD })
  .transform((text): StepThreshold => {
    const [, percent, of] = AT.exec(text) ?? [];
    return { at: Number(percent) / 100, of: of === 'spent' ? 'spent' : 'projected' };
  });

const Limits = mapping(
  {
    size: SizeBounds.optional().describe('Bounds of minimum and maximum, as in limits.'),
    suspend_after: TimeoutBounds.optional().describe('Bounds of the timeout, as in limits.'),
  },
  'bounds such as {size: {max: 1}, suspend_after: {max: 5m}}',
).refine(({ size, suspend_after }) => size !== undefined || suspend_after !== undefined, {
  error: 'limits nothing: add size, suspend_after, or both',
});

const Step = mapping(
  {
    at: Threshold.describe('When the step is reached: a share of the month, as projected or spent.'),
    notify: ReceiverList.optional().describe(
      'Receivers that get a notification when the step is reached, once a month.',
    ),
    limits: Limits.optional().describe('Bounds that hold while the step is reached.'),
    disruption: Disruption.optional().describe(
      'When the limits may change the size of an awake compute; never if absent.',
    ),
  },
  'a step such as {at: 80% projected, notify: [dev-team]}',
).refine(({ notify, limits }) => notify !== undefined || limits !== undefined, {
  error: 'does nothing: add notify, limits, or both',
});
type Step = z.infer<typeof Step>;

const BudgetPolicy = mapping({
  ...policyBase,
  kind: z.literal('budget').describe('An amount for a month, with steps that notify and limit as it is used up.'),
  month: Month.describe('The amount for one billing month of one account: 2000 CUh, or $400.'),
  steps: z
    .array(Step, expected('a list of steps such as [{at: 80% projected, notify: [dev-team]}]'))
    .min(1, 'expected at least one step')
    .max(20, 'a budget has at most 20 steps')
    .describe('What happens as the amount is used up, in ascending order.'),
  include_protected: z
    .boolean(expected('true or false'))
    .default(false)
    .describe('Limits also hold for default and protected branches, and for those of unknown role.'),
}).superRefine(({ steps }, context) => {
  const domainSteps = steps.map(toStep);
  for (const [index, step] of domainSteps.entries()) {
    const message = whyNotAscending(domainSteps[index - 1], step);
    if (message) context.addIssue({ code: 'custom', path: ['steps', index, 'at'], message });
    const looser = whyLooser(domainSteps.slice(0, index), step);
    if (looser) context.addIssue({ code: 'custom', path: ['steps', index, 'limits'], message: looser });
  }
});
type BudgetPolicy = z.infer<typeof BudgetPolicy>;

function toStep({ at, notify = [], limits, disruption }: Step): BudgetStep<PartialDisruption> {
  return {
    ...at,
    notify,
    ...(limits && { limits: rangesOf(toBounds(limits)) }),
    ...(disruption && { disruption: toDisruption(disruption) }),
  };
}

/** A message if the step does not come after the step `before`. For equal shares, `projected` comes first. */
function whyNotAscending(before: BudgetStep | undefined, { at, of }: BudgetStep): string | undefined {
  if (!before || before.at < at || (before.at === at && before.of === 'projected' && of === 'spent')) return undefined;
  return `comes after the step ${stepText(before)}; write steps in ascending order, each once`;
}

/** A message if an earlier step limits more. */
function whyLooser(before: readonly BudgetStep[], step: BudgetStep): string | undefined {
  if (!step.limits) return undefined;
  const isLooser = (earlier: BudgetStep) =>
    FIELD_GROUPS.some((group) => {
      const [was, is] = [earlier.limits?.[group], step.limits?.[group]];
      return was !== undefined && (is === undefined || is.low < was.low || is.high > was.high);
    });
  const tighter = before.findLast(isLooser);
  return tighter && `is looser than the step ${stepText(tighter)}; a later step limits at least as much`;
}

function toBudget(policy: BudgetPolicy, context: FileContext): domain.BudgetPolicy {
  return {
    kind: 'budget',
    ...toBase(policy, context),
    month: policy.month,
    steps: policy.steps.map(toStep),
    includeProtected: policy.include_protected,
    zone: context.timezone,
  };
}

export const budgetSyntax = kindSyntax({
  schema: BudgetPolicy,
  toDomain: toBudget,
  times: () => [],
  settings: ({ steps }) =>
    steps.flatMap(({ limits }, index) => writtenBounds(limits ?? {}, ['steps', index, 'limits'])),
  onlyRaises: false,
});
