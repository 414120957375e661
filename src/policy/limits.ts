import {
  countLeads,
  MAX_STEPS_OF_DECISION,
  MAX_STEPS_TO_FIND_CHANGE,
  stepsOfLeads,
  stepsOfWorstSearch,
  stepsToEvaluate,
  widestCheck,
} from '../domain/decide/search-cost.ts';
import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import { splitGlobs } from '../domain/policy/select.ts';
import type { SelectorKeys } from '../domain/policy/selector.ts';
import { ascending } from '../domain/sorted.ts';
import { sum } from '../domain/sum.ts';
import { calendarsOf } from '../domain/time/windows/date-filter.ts';

type GlobKey = 'accounts' | 'projects' | 'branches' | 'computes' | 'regions';

/** Keys with globs, and how many names an object has to match: a project or a branch has an id and a name. */
const KEYS: { key: GlobKey; names: 1 | 2 }[] = [
  { key: 'accounts', names: 1 },
  { key: 'projects', names: 2 },
  { key: 'branches', names: 2 },
  { key: 'computes', names: 1 },
  { key: 'regions', names: 1 },
];

/**
 * An upper bound of the steps of all policies that may select the same compute. For each selector key, the beginnings of its globs give one
 * bound, and their ends another: the most steps of policies whose globs may match one name. The lowest bound applies.
 */
function mostStepsOfOneCompute(policies: readonly Policy[], stepsOf: (policy: Policy) => number): number {
  const all = policies.map((policy) => ({ policy, steps: stepsOf(policy) }));
  const bounds = KEYS.flatMap(({ key, names }) => {
    if (!policies.some(({ select }) => select[key])) return [];
    // A freeze also applies where a name is unknown.
    const freezes = all.filter(({ policy }) => names > 1 && policy.select[key] && ruleOf(policy).stopsWrites);
    const ofUnknownNames = sum(freezes.map(({ steps }) => steps));
    return ([false, true] as const).map((fromEnd) => {
      const { ofAnyName, ofOneName } = mostOfOneName(
        all.map(({ policy, steps }) => ({ heads: headsOf(policy.select, key, fromEnd), steps })),
      );
      return ofAnyName + ofOneName + (names > 1 ? Math.max(ofOneName, ofUnknownNames) : 0);
    });
  });
  return Math.min(...bounds, sum(all.map(({ steps }) => steps)));
}

/** The steps to match one name: with any glob, with a glob with several stars, and for each character of a glob with `?`, which backtracks. */
const STEPS_OF_GLOB = 0.05;
const STEPS_OF_STARS = 0.5;
const STEPS_OF_CHARACTER = 0.5;

/** An upper bound of the steps to find the policies that select a compute, for names of up to 256 characters. */
function stepsToSelect(policies: readonly Policy[]): number {
  const stepsByKey = KEYS.map(({ key, names }) => {
    const globs = policies.flatMap(({ select }) => select[key] ?? []).map((glob) => glob.replace(/^!/, ''));
    // A glob costs more than its minimum only if the name begins like it.
    const entries = globs.map((glob) => ({ heads: [headOf(glob)], steps: extraStepsOf(glob) }));
    const { ofAnyName, ofOneName } = mostOfOneName(entries);
    return names * (globs.length * STEPS_OF_GLOB + ofAnyName + ofOneName);
  });
  return sum(stepsByKey);
}

/** The steps to match a name that begins like the glob, beyond {@link STEPS_OF_GLOB}. */
function extraStepsOf(glob: string): number {
  if (glob.includes('?')) return 1 + glob.length * STEPS_OF_CHARACTER;
  return /\*.+\*/.test(glob) ? STEPS_OF_STARS : 0;
}

/** The literal beginnings (heads) of globs, or their ends read backwards. The head of a glob without wildcards ends in a NUL. */
function headsOf(select: SelectorKeys, key: GlobKey, fromEnd: boolean): string[] {
  const globs = splitGlobs(select[key] ?? ['*']).includes;
  const heads = globs.map((glob) => headOf(fromEnd ? glob.split('').reverse().join('') : glob));
  // Heads that begin with another head are left out, so that a name begins with at most one of them.
  const distinct: string[] = [];
  for (const head of heads.sort(ascending)) if (!head.startsWith(distinct.at(-1) ?? '\0')) distinct.push(head);
  return distinct;
}

function headOf(glob: string): string {
  const [head = ''] = glob.split(/[*?]/, 1);
  return head.length === glob.length ? `${head}\0` : head;
}

/** The steps of entries that match any name, and the most steps that a single name adds to these. */
function mostOfOneName(entries: readonly { heads: readonly string[]; steps: number }[]) {
  const steps = new Map<string, number>();
  for (const entry of entries) for (const head of entry.heads) steps.set(head, (steps.get(head) ?? 0) + entry.steps);
  const ofAnyName = steps.get('') ?? 0;
  steps.delete('');
  let ofOneName = 0;
  // The heads with which the current head begins, shortest first, with the steps of each head and of all shorter ones.
  const ancestors: { head: string; steps: number }[] = [];
  for (const head of [...steps.keys()].sort(ascending)) {
    while (ancestors.length > 0 && !head.startsWith(ancestors.at(-1)?.head ?? '')) ancestors.pop();
    const stepsSoFar = (ancestors.at(-1)?.steps ?? 0) + (steps.get(head) ?? 0);
    ancestors.push({ head, steps: stepsSoFar });
    ofOneName = Math.max(ofOneName, stepsSoFar);
  }
  return { ofAnyName, ofOneName };
}

/** Limits of a set of policy files: far above usual sizes, but so low that a hostile file is refused before it costs anything. */
export const POLICY_LIMITS = {
  /** Bytes of one file. */
  fileBytes: 512 * 1024,
  /** YAML tokens of one file. */
  tokens: 200_000,
  /** Files of one set. */
  files: 1000,
  /** Policies of one set, disabled ones included. */
  policies: 5000,
  /** Times of all windows of one policy. */
  timesOfPolicy: 1000,
  /** Steps of about a microsecond. A policy with fewer does not count towards {@link stepsOfSet}. */
  stepsOfOrdinaryPolicy: 500,
  /** Steps to get the directives of all costlier policies of a set. */
  stepsOfSet: 50_000,
  /** Steps to find the policies that select a compute. */
  stepsToSelect: 5000,
  /** Time zones of one set; loading one takes about a millisecond. */
  zones: 100,
  /** Days of one trial. */
  trialDays: 1830,
  /** Different cron expressions of one set. */
  crons: 10_000,
  /** Days of calendars, summed over the distinct combinations of calendars in windows. */
  daysOfFilters: 1_000_000,
  /** Calendars of one file. */
  calendars: 100,
  /** Days of one calendar. */
  calendarDays: 20_000,
  /** Characters of all distinct iCalendar files of one set. */
  icalCharacters: 4 * 1024 * 1024,
  /** Nested lists and mappings. */
  depth: 24,
  /** Reported problems of one file. */
  problemsPerFile: 100,
} as const;

/** The message for a policy that takes too long to evaluate; undefined for any other. */
export function whyPolicyTooCostly(policy: Policy): string | undefined {
  const isQuick = stepsOfWorstSearch(policy) <= MAX_STEPS_TO_FIND_CHANGE;
  if (isQuick && stepsToEvaluate(policy) + stepsOfLeads([policy]) <= MAX_STEPS_OF_DECISION) return undefined;
  return 'so many times that follow each other so closely take too long to look through; write fewer, or fewer crons that fire often';
}

/** The message for a policy set that takes too long to evaluate; undefined for any other. */
export function whySetTooCostly(policies: readonly Policy[]): string | undefined {
  const { stepsOfOrdinaryPolicy, stepsOfSet, crons, daysOfFilters, zones } = POLICY_LIMITS;
  const costly = policies.map(stepsToEvaluate).filter((steps) => steps > stepsOfOrdinaryPolicy);
  if (sum(costly) > stepsOfSet) {
    return 'the times of all policies of the set take too long to look through; write fewer, or fewer crons that fire often';
  }
  const widest = widestCheck(policies);
  const stepsOf = (policy: Policy) => stepsToEvaluate(policy) + countLeads(policy) * widest;
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
  if (sum([...days.values()]) <= daysOfFilters) return undefined;
  return `windows name so many combinations of calendars that these have more than ${daysOfFilters} days`;
}
