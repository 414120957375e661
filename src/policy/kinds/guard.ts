import { z } from 'zod';
import { didYouMean } from '../../common/names.ts';
import { formatDuration } from '../../domain/compute/compute-units.ts';
import {
  type BadWhen,
  type Match,
  PLACEHOLDERS,
  placeholdersIn,
  withoutPlaceholders,
} from '../../domain/guards/guard.ts';
import type { WatchTerms } from '../../domain/guards/watch.ts';
import type * as domain from '../../domain/policy/kinds/guard.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { policyBase } from '../schema/policy-base.ts';
import { duration, expected, mapping } from '../schema/scalars.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { kindSyntax } from './kind.ts';

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

/** The problem of a limit; undefined if it is valid. A factor must not make the usual value itself bad. */
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
    if (/[{}]/.test(withoutPlaceholders(text)))
      context.addIssue({ code: 'custom', message: 'expected a placeholder between { and }, such as "{project_name}"' });
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
    `Labels that assign a series to a compute. For each, its value, with ${Object.keys(PLACEHOLDERS).join(', ')} in braces; or a mapping of its values to projects.`,
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
    .describe('How long a compute must be bad without a break, after a lowering, to count as hurt. Default 3m.'),
  watch: duration({ minMs: MINUTE_MS, maxMs: 12 * HOUR_MS, text: '1m to 12h' })
    .default(DEFAULT_WATCH.watchMs)
    .describe('How long a compute is watched after a lowering; only time awake counts. Default 30m.'),
  settle: duration({ minMs: 0, maxMs: HOUR_MS, text: '0s to 1h' })
    .default(DEFAULT_WATCH.settleMs)
    .describe('How long samples are ignored after the lowering or a start of the compute. Default 2m.'),
  // biome-ignore lint/suspicious/noThenProperty: policies read as sentences, and nobody awaits a schema
  then: z
    .enum(['notify', 'undo', 'undo_with_restart'])
    .default('notify')
    .describe(
      'What is done about a lowering that hurts. undo sets timeouts back at once, and sizes when the compute next sleeps; undo_with_restart restarts it for that.',
    ),
  retry: duration({ minMs: HOUR_MS, maxMs: 90 * DAY_MS, text: '1h to 90d' })
    .optional()
    .describe('How long until a lowering that was taken back is tried again. Default: not before its policy changes.'),
}).superRefine(({ query, alert, match, bad_when, watch, settle, for: badFor, then: remedy, retry }, context) => {
  const report = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  const leastWatch = settle + badFor;
  if (watch < leastWatch) {
    const least = formatDuration(leastWatch / 1000);
    report(['watch'], `expected at least settle and for together, or no harm could be found: write ${least} or more`);
  }
  if (retry !== undefined && remedy === 'notify') report(['retry'], 'nothing is taken back with then: notify');
  if ((query === undefined) === (alert === undefined)) {
    report(query === undefined ? [] : ['alert'], 'expected either query or alert');
    return;
  }
  if (query === undefined) {
    if (bad_when !== undefined) report(['bad_when'], 'an alert is bad while it fires; leave out bad_when');
    return;
  }
  if (bad_when === undefined) report([], `missing key "bad_when"; expected ${BAD_WHEN}`);
  for (const { name, remedy } of lostLabels(query, match)) {
    report(['match', name], `the result of the query has no label "${name}": ${remedy}`);
  }
});
type GuardPolicy = z.infer<typeof GuardPolicy>;

/** A string in PromQL. */
export const PROMQL_STRING = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/g;
const LEADING_AGGREGATION = /^[\s(]*(?:sum|avg|min|max|count|group|stddev|stdvar|quantile)\s*\(/;

/**
 * The labels of `match` that the result of an aggregating query certainly lacks. With set operators or `on`, other labels may remain. A label
 * that the query names outside of aggregations, as `label_replace` does in a string, is not lost.
 */
function lostLabels(query: string, match: Match): { name: string; remedy: string }[] {
  const strings = query.match(PROMQL_STRING) ?? [];
  const code = query.replace(PROMQL_STRING, '""');
  if (/\b(?:and|or|unless|on|ignoring)\b/.test(code)) return [];
  const listsAfter = (word: string) =>
    [...code.matchAll(new RegExp(`\\b${word}\\s*\\(([^()]*)\\)`, 'g'))].flatMap(([, names = '']) =>
      names.split(',').map((name) => name.trim()),
    );
  const kept = ['by', 'group_left', 'group_right'].flatMap(listsAfter);
  const removed = listsAfter('without');
  const hasBy = /\bby\s*\(/.test(code);
  const losesAll = LEADING_AGGREGATION.test(code) && !/\b(?:by|without|group_left|group_right)\b/.test(code);
  return Object.keys(match).flatMap((name) => {
    if (kept.includes(name) || strings.some((text) => text.slice(1, -1) === name)) return [];
    if (removed.includes(name)) return [{ name, remedy: 'remove it from "without (…)"' }];
    return hasBy || losesAll ? [{ name, remedy: `add it to "by (…)"` }] : [];
  });
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

export const guardSyntax = kindSyntax({
  schema: GuardPolicy,
  toDomain: toGuard,
  times: () => [],
  settings: () => [],
  onlyRaises: false,
});
