import { type Compute, longerTimeout, type Size } from '../compute.ts';
import type { FieldGroup } from '../desired.ts';
import type { Opinion, Wish } from '../opinion.ts';
import type { ReasonCode } from '../reasons.ts';
import { type Draft, note, type Stage } from './draft.ts';

/** What one group of fields needs to be settled by opinions. */
interface Group<T> {
  group: FieldGroup;
  wishOf(opinion: Opinion): Wish<T> | undefined;
  baseline: T | undefined;
  /** What the compute has: what an opening window is compared with where nothing else has an opinion. */
  actual: T;
  /** The larger of two values; `a` itself where `b` is not larger in any part. */
  larger(a: T, b: T): T;
}

/** First stage: of the opinions, in the order in which they are heard, the first on a group decides it. */
export const settleSchedules: Stage = (draft, { heard, compute, baseline }) => {
  settleGroup<Size>(draft, heard.opinions, {
    group: 'size',
    wishOf: ({ size }) => size,
    baseline: baseline && sizeOf(baseline),
    actual: sizeOf(compute),
    larger: largerSize,
  });
  settleGroup<number>(draft, heard.opinions, {
    group: 'suspend_timeout',
    wishOf: ({ suspendTimeoutSeconds }) => suspendTimeoutSeconds,
    baseline: baseline?.suspendTimeoutSeconds,
    actual: compute.suspendTimeoutSeconds,
    larger: longerTimeout,
  });
};

function settleGroup<T extends Size | number>(draft: Draft, opinions: readonly Opinion[], of: Group<T>): void {
  let won: T | undefined;
  let leading: Spoken<T> | undefined;
  for (const spoken of spokenOn(opinions, of)) {
    const { opinion, value } = spoken;
    const code = codeOf(spoken, won !== undefined || (opinion.leads !== undefined && leading !== undefined));
    const step = { group: of.group, code, opinion, policy: opinion.policy };
    if (code === 'ready') leading = spoken;
    else if (value === undefined || code === 'outranked') note(draft, step);
    else {
      won = value;
      note(draft, { ...step, after: value });
    }
  }
  if (leading?.value !== undefined) leadUp(draft, of, leading.opinion, leading.value, won ?? of.actual);
  else if (won === undefined) note(draft, { group: of.group, code: 'no_opinion' });
}

/** An opinion on one group; without a value where it is the baseline, and that is not known. */
interface Spoken<T> {
  opinion: Opinion;
  wish: Wish<T>;
  value: T | undefined;
}

function* spokenOn<T>(opinions: readonly Opinion[], { wishOf, baseline }: Group<T>): Generator<Spoken<T>> {
  for (const opinion of opinions) {
    const wish = wishOf(opinion);
    if (wish !== undefined) yield { opinion, wish, value: wish === 'baseline' ? baseline : (wish as T) };
  }
}

/** Before a window that is to be in force by its start opens, the larger of the old value and of its own holds. */
function leadUp<T extends Size | number>(
  draft: Draft,
  { group, larger }: Group<T>,
  opinion: Opinion,
  value: T,
  before: T,
): void {
  const after = larger(before, value);
  const step = { group, opinion, policy: opinion.policy };
  if (after === before) note(draft, { ...step, code: 'not_yet' });
  else note(draft, { ...step, code: 'ready', before, after });
}

function codeOf({ opinion, wish, value }: Spoken<unknown>, decided: boolean): ReasonCode {
  if (decided) return 'outranked';
  if (value === undefined) return 'baseline_unknown';
  if (opinion.leads) return 'ready';
  if (wish === 'baseline') return 'baseline';
  return opinion.source === 'otherwise' ? 'otherwise' : 'window_open';
}

function sizeOf({ minCu, maxCu }: Size | Compute): Size {
  return { minCu, maxCu };
}

function largerSize(a: Size, b: Size): Size {
  if (b.minCu <= a.minCu && b.maxCu <= a.maxCu) return a;
  return { minCu: Math.max(a.minCu, b.minCu), maxCu: Math.max(a.maxCu, b.maxCu) };
}
