import { createHash } from 'node:crypto';
import { z } from 'zod';
import type * as domain from '../../domain/policy/kinds/trial.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { TrialDesign } from '../../domain/trial/assignment.ts';
import { dayOfDate } from '../calendars/public-holidays.ts';
import { POLICY_LIMITS } from '../limits.ts';
import { FullName, policyBase } from '../schema/policy-base.ts';
import { expected, mapping } from '../schema/scalars.ts';
import { qualifiedName } from '../teams.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { DOLLARS } from './budget.ts';
import { kindSyntax } from './kind.ts';

/** Shares of the control group: each means one in this many units. */
const SHARES = { '50%': 2, '33%': 3, '25%': 4, '20%': 5, '10%': 10 } as const;
/** Days of a period. */
const ROTATIONS = { '7d': 7, '14d': 14, '28d': 28 } as const;

/** A local date, parsed to days since 1970-01-01. */
function localDate(what: string) {
  const text = `expected a date such as "2027-01-11", ${what}`;
  return z
    .string({ error: () => text })
    .meta({ title: 'a date', pattern: String.raw`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$` })
    .transform((date, context) => {
      const day = dayOfDate(date);
      if (day !== undefined) return day;
      context.issues.push({ code: 'custom', message: text, input: date });
      return z.NEVER;
    });
}

const AMOUNT = 'dollars such as "$200"';

const StopIf = mapping({
  cost: z
    .string(expected(AMOUNT))
    .meta({ title: AMOUNT, pattern: DOLLARS.source })
    .transform((text, context) => {
      const dollars = Number(DOLLARS.exec(text)?.[1]);
      if (dollars > 0) return dollars;
      context.issues.push({ code: 'custom', message: `expected ${AMOUNT}`, input: text });
      return z.NEVER;
    })
    .describe('Dollars that withdrawing the policies from the control group may cost, as measured.'),
});

const TrialPolicy = mapping({
  ...policyBase,
  kind: z.literal('trial').describe('Withdraws policies from a control group that rotates, to measure what they save.'),
  of: z
    .array(FullName, expected('a list of names of schedules and soft limits'))
    .min(1, 'expected the name of at least one schedule or soft limit')
    .max(100, 'a trial withdraws at most 100 policies')
    .describe(
      'Schedules and soft limits that have no effect in the control group; of a team, in a file of no team, as team-web/hours.',
    ),
  control: z
    .enum(Object.keys(SHARES) as (keyof typeof SHARES)[], expected(`one of ${Object.keys(SHARES).join(', ')}`))
    .describe('The share of the units that is in the control group at a time.'),
  unit: z
    .enum(['project', 'branch'])
    .default('project')
    .describe(
      'What is drawn: whole projects; or branches, of which only those count that live through a whole rotation.',
    ),
  rotate: z
    .enum(Object.keys(ROTATIONS) as (keyof typeof ROTATIONS)[], expected(`one of ${Object.keys(ROTATIONS).join(', ')}`))
    .default('7d')
    .describe('How long a period is. After each another part of the units is the control group.'),
  from: localDate('on which the trial begins').describe('The first day, from local midnight in the zone of the file.'),
  until: localDate('on which the trial is over').describe(
    'The day after the last one. In between is a whole number of rotations: in each, every unit is control once.',
  ),
  seed: z
    .string(expected('any text of at most 64 characters'))
    .max(64, 'expected at most 64 characters')
    .default('')
    .describe('Another seed draws other units.'),
  stop_if: StopIf.describe('Ends the trial early, for all units: the policies have their effect again.').optional(),
}).superRefine(({ from, until, control, rotate }, context) => {
  const rotation = SHARES[control] * ROTATIONS[rotate];
  const days = until - from;
  const { trialDays } = POLICY_LIMITS;
  if (days > trialDays) {
    context.addIssue({
      code: 'custom',
      path: ['until'],
      message: `is more than ${trialDays} days after from; write an earlier date`,
    });
    return;
  }
  if (days > 0 && days % rotation === 0) return;
  const whole = Math.max(1, Math.round(days / rotation)) * rotation;
  const date = new Date((from + whole) * DAY_MS).toISOString().slice(0, 10);
  const message = `is ${days} days after from; with ${control} and ${rotate} a rotation takes ${rotation} days, so write ${date}`;
  context.addIssue({ code: 'custom', path: ['until'], message });
});
type TrialPolicy = z.infer<typeof TrialPolicy>;

function toTrial(policy: TrialPolicy, context: FileContext): domain.TrialPolicy {
  const { unit, seed, from: fromDay, until } = policy;
  const of = policy.of.map((name) => (name.includes('/') ? name : qualifiedName(context.team, name)));
  const rotateDays = ROTATIONS[policy.rotate];
  const periods = (until - fromDay) / rotateDays;
  // A trial may be prolonged, so its digest must not depend on the number of periods.
  const fixed = { seed, oneOf: SHARES[policy.control], rotateDays, fromDay, zone: context.timezone };
  const design: TrialDesign = { ...fixed, periods };
  return {
    kind: 'trial',
    ...toBase(policy, context),
    of,
    unit,
    design,
    ...(policy.stop_if && { stopIf: { costUsd: policy.stop_if.cost } }),
    digest: createHash('sha256')
      .update(JSON.stringify([fixed, unit, of.toSorted()]))
      .digest('hex')
      .slice(0, 16),
  };
}

export const trialSyntax = kindSyntax({
  schema: TrialPolicy,
  toDomain: toTrial,
  times: () => [],
  settings: () => [],
  onlyRaises: false,
});
