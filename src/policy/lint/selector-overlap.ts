import type { SelectorKeys } from '../../domain/policy/selector.ts';
import type { Budget } from './budget.ts';
import { areApart, type Glob, globCovers, globsMeet, toGlob } from './glob-overlap.ts';

/** The keys with globs, and the form of an id where globs are compared with a name as well. */
const ID_PATTERNS = {
  projects: /^[a-z]+-[a-z]+-\d{5,}$/,
  branches: /^br-[\w-]+$/,
  accounts: undefined,
  computes: undefined,
  regions: undefined,
} as const satisfies Partial<Record<keyof SelectorKeys, RegExp | undefined>>;

const KEYS = Object.keys(ID_PATTERNS) as (keyof typeof ID_PATTERNS)[];

/** True if a glob is written as the control API writes the id of a project. */
export function isProjectId(glob: string): boolean {
  return ID_PATTERNS.projects.test(glob);
}

/** Globs of one key, taken apart. Those that the list itself excludes are left out. */
interface GlobList {
  includes: readonly (Glob & { isId: boolean })[];
  excludes: readonly Glob[];
}

type GlobLists = Partial<Record<keyof typeof ID_PATTERNS, GlobList>>;

/** Comparisons of two globs that differ in their first letters, and cells of a comparison in full, for one step. */
const COMPARISONS_PER_STEP = 200;
const CELLS_PER_STEP = 2000;

/** Of each run apart: taking globs apart costs steps, and where they run out a list is not whole. */
const known = new WeakMap<Budget, Map<SelectorKeys, GlobLists>>();

/**
 * False if no compute can match both selectors, whatever the fleet. Names of projects and branches are taken to differ from
 * ids: a glob that is written as an id may be the same project as any name. False also once the budget is spent.
 */
export function selectorsMeet(a: SelectorKeys, b: SelectorKeys, budget: Budget): boolean {
  if (a.types && b.types && !a.types.some((type) => b.types?.includes(type))) return false;
  const lists = listsOf(a, budget);
  const others = listsOf(b, budget);
  for (const key of KEYS) {
    const list = lists[key];
    const other = others[key];
    if (list && other && !listsMeet(list, other, budget)) return false;
  }
  return true;
}

function listsOf(selector: SelectorKeys, budget: Budget): GlobLists {
  const ofRun = known.get(budget) ?? new Map<SelectorKeys, GlobLists>();
  known.set(budget, ofRun);
  const kept = ofRun.get(selector);
  if (kept) return kept;
  const lists: GlobLists = {};
  for (const key of KEYS) {
    const globs = selector[key];
    if (globs) lists[key] = toList(globs, ID_PATTERNS[key], budget);
  }
  ofRun.set(selector, lists);
  return lists;
}

function toList(globs: readonly string[], id: RegExp | undefined, budget: Budget): GlobList {
  const excludes = globs.filter((glob) => glob.startsWith('!')).map((glob) => toGlob(glob.slice(1)));
  const includes = globs
    .filter((glob) => !glob.startsWith('!'))
    .map((glob) => ({ ...toGlob(glob), isId: id?.test(glob) === true }))
    .filter((glob) => !isExcluded(glob, excludes, budget));
  return { includes, excludes };
}

function listsMeet(a: GlobList, b: GlobList, budget: Budget): boolean {
  if (!budget.spend((a.includes.length * b.includes.length) / COMPARISONS_PER_STEP)) return false;
  for (const glob of a.includes) {
    for (const other of b.includes) {
      if (glob.isId === other.isId && !meets(glob, other, budget)) continue;
      if (!isExcluded(glob, b.excludes, budget) && !isExcluded(other, a.excludes, budget)) return true;
    }
  }
  return false;
}

function meets(a: Glob, b: Glob, budget: Budget): boolean {
  if (areApart(a, b)) return false;
  if (a.text === b.text || (a.isPrefix && b.isPrefix)) return true;
  return spendCells(a, b, budget) && globsMeet(a.text, b.text);
}

function isExcluded(glob: Glob, excludes: readonly Glob[], budget: Budget): boolean {
  for (const exclude of excludes) {
    if (!mayCover(exclude, glob) || areApart(exclude, glob)) continue;
    if (spendCells(exclude, glob, budget) && globCovers(exclude.text, glob.text)) return true;
  }
  return false;
}

/** A glob that is open at an end is covered only by one that is open there as well. */
function mayCover(outer: Glob, inner: Glob): boolean {
  return !(inner.text.endsWith('*') && !outer.text.endsWith('*'));
}

function spendCells(a: Glob, b: Glob, budget: Budget): boolean {
  return budget.spend((a.text.length * b.text.length) / CELLS_PER_STEP);
}

/** True if a selector may select something in an account, by the account's name. */
export function mayBeAccount({ accounts: globs }: SelectorKeys, name: string): boolean {
  if (globs === undefined) return true;
  const isMatched = (glob: string) => globsMeet(glob, name);
  const excludes = globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1));
  return globs.some((glob) => !glob.startsWith('!') && isMatched(glob)) && !excludes.some(isMatched);
}
