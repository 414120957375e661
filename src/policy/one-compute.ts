import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { SelectorKeys } from '../domain/policy/selector.ts';
import { ascending } from '../domain/sorted.ts';

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
 * At most so many steps the policies that may select one and the same compute have together, whatever its names are: for each key of
 * selectors, and by the beginnings and the ends of globs, the most that may match one name. The least of these counts.
 */
export function mostStepsOfOneCompute(policies: readonly Policy[], stepsOf: (policy: Policy) => number): number {
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

/** What it takes to match one name with a glob: at least, with stars, and for each character of one with `?`, which goes back. */
const STEPS_OF_GLOB = 0.05;
const STEPS_OF_STARS = 0.5;
const STEPS_OF_CHARACTER = 0.5;

/** At most so many steps it takes to find the policies that select a compute, whatever its names are, of up to 256 characters. */
export function stepsToSelect(policies: readonly Policy[]): number {
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

/** With what names begin that a selector may match, or end, read backwards. No name contains the mark of a whole one. */
function headsOf(select: SelectorKeys, key: GlobKey, fromEnd: boolean): string[] {
  const globs = select[key]?.filter((glob) => !glob.startsWith('!')) ?? ['*'];
  const heads = globs.map((glob) => headOf(fromEnd ? glob.split('').reverse().join('') : glob));
  // Of two that begin alike the shorter counts: then a name begins with one of them at most.
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
