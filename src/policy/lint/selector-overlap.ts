import { getOrAdd } from '../../domain/grouping.ts';
import { splitGlobs } from '../../domain/policy/select.ts';
import type { SelectorKeys } from '../../domain/policy/selector.ts';
import { areApart, type Glob, globCovers, globsMeet, toGlob } from './glob-overlap.ts';
import type { StepLimit } from './step-limit.ts';

/** The keys with globs; for those that match ids and names, the form of an id. */
const ID_PATTERNS = {
  projects: /^[a-z]+-[a-z]+-\d{5,}$/,
  branches: /^br-[\w-]+$/,
  accounts: undefined,
  computes: undefined,
  regions: undefined,
} as const satisfies Partial<Record<keyof SelectorKeys, RegExp | undefined>>;

const KEYS = Object.keys(ID_PATTERNS) as (keyof typeof ID_PATTERNS)[];

/** True if a glob has the form of a project id. */
export function isProjectId(glob: string): boolean {
  return ID_PATTERNS.projects.test(glob);
}

/** The globs of one key. Globs that the list itself excludes are left out. */
interface GlobList {
  includes: readonly (Glob & { isId: boolean })[];
  excludes: readonly Glob[];
}

type GlobLists = Partial<Record<keyof typeof ID_PATTERNS, GlobList>>;

/** One step is this many comparisons of prefixes, or this many pairs of characters in comparisons of whole globs. */
const COMPARISONS_PER_STEP = 200;
const CELLS_PER_STEP = 2000;

/** Cached for one run only: a list is incomplete if the steps of its run were exhausted. */
const listsByRun = new WeakMap<StepLimit, Map<SelectorKeys, GlobLists>>();

/**
 * False if no compute can match both selectors, or if the step limit is exceeded. A glob in the form of an id may mean the
 * same project or branch as any name.
 */
export function selectorsMeet(a: SelectorKeys, b: SelectorKeys, limit: StepLimit): boolean {
  if (a.types && b.types && !a.types.some((type) => b.types?.includes(type))) return false;
  const lists = listsOf(a, limit);
  const others = listsOf(b, limit);
  for (const key of KEYS) {
    const list = lists[key];
    const other = others[key];
    if (list && other && !listsMeet(list, other, limit)) return false;
  }
  return true;
}

function listsOf(selector: SelectorKeys, limit: StepLimit): GlobLists {
  const cache = getOrAdd(listsByRun, limit, () => new Map<SelectorKeys, GlobLists>());
  const cached = cache.get(selector);
  if (cached) return cached;
  const lists: GlobLists = {};
  for (const key of KEYS) {
    const globs = selector[key];
    if (globs) lists[key] = toList(globs, ID_PATTERNS[key], limit);
  }
  cache.set(selector, lists);
  return lists;
}

function toList(globs: readonly string[], idPattern: RegExp | undefined, limit: StepLimit): GlobList {
  const split = splitGlobs(globs);
  const excludes = split.excludes.map(toGlob);
  const includes = split.includes
    .map((glob) => ({ ...toGlob(glob), isId: idPattern?.test(glob) === true }))
    .filter((glob) => !isExcluded(glob, excludes, limit));
  return { includes, excludes };
}

function listsMeet(a: GlobList, b: GlobList, limit: StepLimit): boolean {
  if (!limit.spend((a.includes.length * b.includes.length) / COMPARISONS_PER_STEP)) return false;
  for (const glob of a.includes) {
    for (const other of b.includes) {
      if (glob.isId === other.isId && !meets(glob, other, limit)) continue;
      if (!isExcluded(glob, b.excludes, limit) && !isExcluded(other, a.excludes, limit)) return true;
    }
  }
  return false;
}

function meets(a: Glob, b: Glob, limit: StepLimit): boolean {
  if (areApart(a, b)) return false;
  if (a.text === b.text || (a.isPrefix && b.isPrefix)) return true;
  return spendCells(a, b, limit) && globsMeet(a.text, b.text);
}

function isExcluded(glob: Glob, excludes: readonly Glob[], limit: StepLimit): boolean {
  for (const exclude of excludes) {
    if (areApart(exclude, glob) || (glob.text.endsWith('*') && !exclude.text.endsWith('*'))) continue;
    if (spendCells(exclude, glob, limit) && globCovers(exclude.text, glob.text)) return true;
  }
  return false;
}

function spendCells(a: Glob, b: Glob, limit: StepLimit): boolean {
  return limit.spend((a.text.length * b.text.length) / CELLS_PER_STEP);
}

/** True if a selector may select something in the account with this name. */
export function maySelectIn({ accounts: globs }: SelectorKeys, name: string): boolean {
  if (globs === undefined) return true;
  const { includes, excludes } = splitGlobs(globs);
  const isMatched = (glob: string) => globsMeet(glob, name);
  return includes.some(isMatched) && !excludes.some(isMatched);
}
