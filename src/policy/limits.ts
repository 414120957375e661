import {
  leadsOf,
  MAX_STEPS_OF_DECISION,
  MAX_STEPS_OF_QUESTION,
  stepsOfLeads,
  stepsOfQuestion,
  stepsToAsk,
  widestCheck,
} from '../domain/decide/search-cost.ts';
import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { SelectorKeys } from '../domain/policy/selector.ts';
import { ascending } from '../domain/sorted.ts';
import { calendarsOf } from '../domain/time/windows/date-filter.ts';

type GlobKey = 'accounts' | 'projects' | 'branches' | 'computes' | 'regions';

/** By how many names a thing is known: projects and branches by an id too. Of freezes it counts that a name may be unknown. */
const KEYS: { key: GlobKey; names: 1 | 2 }[] = [
  { key: 'accounts', names: 1 },
  { key: 'projects', names: 2 },
  { key: 'branches', names: 2 },
  { key: 'computes', names: 1 },
  { key: 'regions', names: 1 },
];

/**
 * The most steps that policies on one and the same compute may have together, whatever its names: for each key of selectors, and by the
 * beginnings and the ends of globs, the most that may match one name. The least of these counts.
 */
function mostStepsOfOneCompute(policies: readonly Policy[], stepsOf: (policy: Policy) => number): number {
  const all = policies.map((policy) => ({ policy, steps: stepsOf(policy) }));
  const bounds = KEYS.flatMap(({ key, names }) => {
    if (!policies.some(({ select }) => select[key])) return [];
    const freezes = all.filter(({ policy }) => names > 1 && policy.select[key] && ruleOf(policy).stopsWrites);
    const unknown = freezes.reduce((sum, { steps }) => sum + steps, 0);
    return ([false, true] as const).map((fromEnd) => {
      const { any, one } = mostOfOneName(
        all.map(({ policy, steps }) => ({ heads: headsOf(policy.select, key, fromEnd), steps })),
      );
      return any + one + (names > 1 ? Math.max(one, unknown) : 0);
    });
  });
  return Math.min(
    ...bounds,
    all.reduce((sum, { steps }) => sum + steps, 0),
  );
}

/** The cost of matching one name with a glob: the minimum, with stars, and for each character of one with `?`, which backtracks. */
const STEPS_OF_GLOB = 0.05;
const STEPS_OF_STARS = 0.5;
const STEPS_OF_CHARACTER = 0.5;

/** The most steps of finding the policies that select a compute, for any names of up to 256 characters. */
function stepsToSelect(policies: readonly Policy[]): number {
  return KEYS.reduce((sum, { key, names }) => {
    const globs = policies.flatMap(({ select }) => select[key] ?? []).map((glob) => glob.replace(/^!/, ''));
    // One that begins otherwise than the name goes no further.
    const { any, one } = mostOfOneName(globs.map((glob) => ({ heads: [headOf(glob)], steps: stepsToMatch(glob) })));
    return sum + names * (globs.length * STEPS_OF_GLOB + any + one);
  }, 0);
}

function stepsToMatch(glob: string): number {
  if (glob.includes('?')) return 1 + glob.length * STEPS_OF_CHARACTER;
  return /\*.+\*/.test(glob) ? STEPS_OF_STARS : 0;
}

/** The beginnings, or the ends read backwards, of names that a selector may match. No name contains the mark of a whole one. */
function headsOf(select: SelectorKeys, key: GlobKey, fromEnd: boolean): string[] {
  const globs = select[key]?.filter((glob) => !glob.startsWith('!')) ?? ['*'];
  const heads = globs.map((glob) => headOf(fromEnd ? glob.split('').reverse().join('') : glob));
  // Of two with the same beginning the shorter counts: then a name begins with at most one of them.
  const least: string[] = [];
  for (const head of heads.sort(ascending)) if (!head.startsWith(least.at(-1) ?? '\0')) least.push(head);
  return least;
}

function headOf(glob: string): string {
  const [head = ''] = glob.split(/[*?]/, 1);
  return head.length === glob.length ? `${head}\0` : head;
}

/** Steps of the policies that match any name, and the most that one name adds. */
function mostOfOneName(entries: readonly { heads: readonly string[]; steps: number }[]): { any: number; one: number } {
  const steps = new Map<string, number>();
  for (const entry of entries) for (const head of entry.heads) steps.set(head, (steps.get(head) ?? 0) + entry.steps);
  const any = steps.get('') ?? 0;
  steps.delete('');
  let one = 0;
  const begun: { head: string; sum: number }[] = [];
  for (const head of [...steps.keys()].sort(ascending)) {
    while (begun.length > 0 && !head.startsWith(begun.at(-1)?.head ?? '')) begun.pop();
    const sum = (begun.at(-1)?.sum ?? 0) + (steps.get(head) ?? 0);
    begun.push({ head, sum });
    one = Math.max(one, sum);
  }
  return { any, one };
}

/** Limits of a set of policy files. Far above what people write, and low enough that a hostile file is refused before it costs anything. */
export const POLICY_LIMITS = {
  /** Bytes of one file. */
  fileBytes: 512 * 1024,
  /** Lexical parts of one file: words, marks, line breaks. */
  tokens: 200_000,
  /** Files of one set. */
  files: 1000,
  /** Policies of one set, disabled ones included. */
  policies: 5000,
  /** Times of one policy, of all its windows. */
  timesOfPolicy: 1000,
  /** Steps, each about a microsecond, of a policy of ordinary windows; a set may have this many for each of its policies. */
  stepsOfOrdinaryPolicy: 500,
  /** Steps of asking all other policies of a set for their directives. */
  stepsOfSet: 50_000,
  /** Steps that it takes to find the policies of a set that select a compute. */
  stepsToSelect: 5000,
  /** Zones of one set: each is read once, in about a millisecond. */
  zones: 100,
  /** Days of one trial. */
  trialDays: 1830,
  /** Different cron expressions of one set. */
  crons: 10_000,
  /** Days of the calendars of one set, counted once for each combination of calendars that windows name. */
  daysOfFilters: 1_000_000,
  /** Calendars of one file. */
  calendars: 100,
  /** Days of one calendar. */
  calendarDays: 20_000,
  /** Characters of all the iCalendar files of one set, each counted once. */
  icalCharacters: 4 * 1024 * 1024,
  /** Lists and mappings inside each other. */
  depth: 24,
  /** Problems that are reported of one file. */
  problemsPerFile: 100,
} as const;

/** Why a policy would take too long to ask, in a message; undefined if it would not. */
export function whyPolicyTooCostly(policy: Policy): string | undefined {
  const isAskedSoon = stepsOfQuestion(policy) <= MAX_STEPS_OF_QUESTION;
  if (isAskedSoon && stepsToAsk(policy) + stepsOfLeads([policy]) <= MAX_STEPS_OF_DECISION) return undefined;
  return 'so many times that follow each other so closely take too long to look through; write fewer, or fewer crons that fire often';
}

/** The same of all policies of a set together, each of which may be cheap. */
export function whySetTooCostly(policies: readonly Policy[]): string | undefined {
  const { stepsOfOrdinaryPolicy, stepsOfSet, crons, daysOfFilters, zones } = POLICY_LIMITS;
  const costly = policies.map(stepsToAsk).filter((steps) => steps > stepsOfOrdinaryPolicy);
  if (costly.reduce((sum, steps) => sum + steps, 0) > stepsOfSet) {
    return 'the times of all policies of the set take too long to look through; write fewer, or fewer crons that fire often';
  }
  const widest = widestCheck(policies);
  const stepsOf = (policy: Policy) => stepsToAsk(policy) + leadsOf(policy) * widest;
  if (mostStepsOfOneCompute(policies, stepsOf) > MAX_STEPS_OF_DECISION) {
    return 'the policies that may select one and the same compute take too long to decide; write fewer of them, or select by names that begin or end differently';
  }
  if (stepsToSelect(policies) > POLICY_LIMITS.stepsToSelect) {
    return 'the globs of all selectors take too long to match with a compute; write fewer, with fewer wildcards and without "?"';
  }
  const times = policies.flatMap((policy) => ruleOf(policy).times(policy));
  const expressions = times.flatMap((time) => {
    if (time.kind === 'cron') return [time.cron];
    return time.kind === 'cron-switch' ? [time.startCron, time.endCron] : [];
  });
  if (new Set(expressions).size > crons) return `more than ${crons} different cron expressions in the set`;
  if (new Set(times.flatMap((time) => ('zone' in time ? [time.zone] : []))).size > zones) {
    return `more than ${zones} different time zones in the set`;
  }
  const days = new Map(times.map(calendarsOf).map(({ key, days: count }) => [key, count]));
  if ([...days.values()].reduce((sum, count) => sum + count, 0) <= daysOfFilters) return undefined;
  return `windows name so many combinations of calendars that these have more than ${daysOfFilters} days`;
}
