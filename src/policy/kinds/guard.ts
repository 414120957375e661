import { z } from 'zod';
import { didYouMean } from '../../common/names.ts';
import { type BadWhen, type Match, PLACEHOLDERS, placeholdersIn } from '../../domain/guards/guard.ts';
import type { WatchTerms } from '../../domain/guards/watch.ts';
import type * as domain from '../../domain/policy/kinds/guard.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { policyBase } from '../schema/policy-base.ts';
import { duration, expected, mapping } from '../schema/scalars.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { kindText } from './kind.ts';

const BAD_WHEN = 'a limit such as "> 0.4", or "> 1.5x before"';
const NUMBER = String.raw`\d{1,12}(?:\.\d{1,9})?`;
const BAD_WHEN_FORM = new RegExp(`^([<>])\\s*(${NUMBER})(x before)?$`);

const BadWhenText = z
  .string(expected(BAD_WHEN))
  .meta({ title: BAD_WHEN, pattern: BAD_WHEN_FORM.source })
  .transform((text, context): BadWhen => {
    const [, sign, number, before] = BAD_WHEN_FORM.exec(text) ?? [];
    const problem = limitProblem(sign, Number(number), before !== undefined);
    if (problem === undefined) {
      return { side: sign === '>' ? 'above' : 'below', limit: Number(number), relative: before !== undefined };
    }
    context.issues.push({ code: 'custom', message: problem, input: text });
    return z.NEVER;
  });

/** Undefined for a valid limit. A multiple must not include the usual value. */
function limitProblem(sign: string | undefined, limit: number, relative: boolean): string | undefined {
  if (sign === undefined) return `expected ${BAD_WHEN}`;
  if (!relative) return undefined;
  if (sign === '>' && limit <= 1)
    return 'the usual value itself would be bad; write a factor above 1, such as "> 1.5x before"';
  if (sign === '<' && (limit >= 1 || limit === 0)) return 'write a factor between 0 and 1, such as "< 0.5x before"';
  return undefined;
}

const MATCH = 'labels with their values, such as {service: "{project_name}"}';
const label = z.string().regex(/^[a-zA-Z_]\w{0,99}$/, 'expected the name of a label');
const Value = z
  .string(expected('a text such as "{project_name}", or a mapping of values to projects'))
  .min(1)
  .max(200)
  .superRefine((text, context) => {
    const known = Object.keys(PLACEHOLDERS);
    for (const name of placeholdersIn(text).filter((placeholder) => !known.includes(placeholder))) {
      const hint = didYouMean(name, known) || `; there are ${known.map((other) => `{${other}}`).join(', ')}`;
      context.addIssue({ code: 'custom', message: `{${name}} is not known${hint}` });
    }
  });
const MatchText = z
  .record(label, z.union([Value, z.record(z.string().min(1).max(200), z.string().min(1).max(200))]), expected(MATCH))
  .refine((match) => Object.keys(match).length > 0 && Object.keys(match).length <= 5, `expected one to five ${MATCH}`);

const DEFAULT_WATCH: WatchTerms = { forMs: 3 * MINUTE_MS, watchMs: 30 * MINUTE_MS, settleMs: 2 * MINUTE_MS };

const GuardPolicy = mapping({
  ...policyBase,
  kind: z
    .literal('guard')
    .describe('Is asked before a lowering that would restart an awake compute, and watches computes after lowerings.'),
  source: z.string(expected('the name of a source')).describe('The name of a Prometheus, from sources.'),
  query: z
    .string(expected('a query'))
    .min(1)
    .max(10_000)
    .optional()
    .describe('One query for all computes; its series are matched to them.'),
  alert: z
    .string(expected('the name of an alert'))
    .regex(/^[\w:.\- ]{1,200}$/, 'expected the name of an alert, such as ApiLatencyHigh')
    .optional()
    .describe('An alert instead of a query: bad while it fires.'),
  match: MatchText.describe(
    `Labels of a series, and the value that a compute's has, with ${Object.keys(PLACEHOLDERS).join(', ')} in braces; or a mapping of values to projects.`,
  ),
  bad_when: BadWhenText.optional().describe(
    'Which values are bad: above or below a limit, or a multiple of what the compute had before. Required with query.',
  ),
  no_data: z
    .enum(['unknown', 'healthy'])
    .default('unknown')
    .describe('What a compute without a value counts as. An alert that does not fire is healthy.'),
  for: duration({ minMs: MINUTE_MS, maxMs: HOUR_MS, text: '1m to 1h' })
    .default(DEFAULT_WATCH.forMs)
    .describe('After a lowering, so long a compute must be bad without a break. Default 3m.'),
  watch: duration({ minMs: MINUTE_MS, maxMs: 12 * HOUR_MS, text: '1m to 12h' })
    .default(DEFAULT_WATCH.watchMs)
    .describe('So long a compute is watched after a lowering, counted while it is awake. Default 30m.'),
  settle: duration({ minMs: 0, maxMs: HOUR_MS, text: '0s to 1h' })
    .default(DEFAULT_WATCH.settleMs)
    .describe('Samples count from so long after the lowering, or the start of the compute. Default 2m.'),
  // biome-ignore lint/suspicious/noThenProperty: policies read as sentences, and nobody awaits a schema
  then: z
    .enum(['notify', 'undo', 'undo_with_restart'])
    .default('notify')
    .describe(
      'What is done about a lowering that hurts. undo sets timeouts back at once, and sizes when the compute next sleeps; undo_with_restart restarts it for that.',
    ),
  retry: duration({ minMs: HOUR_MS, maxMs: 90 * DAY_MS, text: '1h to 90d' })
    .optional()
    .describe('A lowering that was taken back is tried again after so long. Default: not before its policy changes.'),
}).superRefine(({ query, alert, match, bad_when, watch, settle, for: badFor, ...more }, context) => {
  const report = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (watch < settle + badFor) report(['watch'], 'expected at least settle and for together: nothing could be found');
  if (more.retry !== undefined && more.then === 'notify') report(['retry'], 'nothing is taken back with then: notify');
  if ((query === undefined) === (alert === undefined)) {
    report(query === undefined ? [] : ['alert'], 'expected either query or alert');
    return;
  }
  if (query === undefined) {
    if (bad_when !== undefined) report(['bad_when'], 'an alert is bad while it fires; leave out bad_when');
    return;
  }
  if (bad_when === undefined) report([], `missing key "bad_when"; expected ${BAD_WHEN}`);
  for (const name of lostLabels(query, match)) {
    const message = `the result of the query has no label "${name}": add it to "by (…)"`;
    report(['match', name], message);
  }
});
type GuardPolicy = z.infer<typeof GuardPolicy>;

/** The labels of `match` that an aggregating query does not name. */
function lostLabels(query: string, match: Match): string[] {
  if (!/\bby\s*\(/.test(query)) return [];
  return Object.keys(match).filter((name) => !new RegExp(`\\b${name}\\b`).test(query));
}

function toGuard(policy: GuardPolicy, context: FileContext): domain.GuardPolicy {
  const { source, query, alert, match, bad_when, no_data, then: remedy, retry } = policy;
  const base = {
    kind: 'guard' as const,
    ...toBase(policy, context),
    source,
    match,
    forMs: policy.for,
    watchMs: policy.watch,
    settleMs: policy.settle,
    remedy,
    ...(retry !== undefined && { retryMs: retry }),
  };
  if (query !== undefined && bad_when !== undefined) {
    return { ...base, query, isAlert: false, badWhen: bad_when, noData: no_data };
  }
  return {
    ...base,
    query: `ALERTS{alertname="${alert}",alertstate="firing"}`,
    isAlert: true,
    badWhen: { side: 'above', limit: 0, relative: false },
    noData: 'healthy',
  };
}

/** `kind: guard`: a query that must be healthy before a lowering, and is watched after it. */
export const guardText = kindText({
  schema: GuardPolicy,
  toDomain: toGuard,
  times: () => [],
  settings: () => [],
  onlyRaises: false,
});
