import { type Compute, longerTimeout, type Size } from '../compute.ts';
import type { FieldGroup } from '../desired.ts';
import type { Opinion, Wish } from '../opinion.ts';
import type { ReasonCode } from '../reasons.ts';
import type { Statements } from '../statement.ts';
import { anyOpenAt } from '../windows.ts';
import { type Draft, emptyDraft, note, type Stage, type StageInput } from './draft.ts';

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

/** What depends on nothing but what is heard is settled once for all who hear it. */
const settled = new WeakMap<Statements, Draft>();

/** First stage: of the opinions, in the order in which they are heard, the first on a group decides it. */
export const settleSchedules: Stage = (draft, input) => {
  const { heard } = input;
  if (heard.opinions.some(dependsOnCompute)) {
    settleBoth(draft, input);
    return;
  }
  const shared = settled.get(heard) ?? emptyDraft();
  if (!settled.has(heard)) settleBoth(shared, input);
  settled.set(heard, shared);
  const { trace, deciders, size, suspendTimeoutSeconds } = shared;
  Object.assign(draft, { trace: trace.slice(), deciders: { ...deciders }, size, suspendTimeoutSeconds });
};

function dependsOnCompute({ leads, size, suspendTimeoutSeconds }: Opinion): boolean {
  return leads !== undefined || size === 'baseline' || suspendTimeoutSeconds === 'baseline';
}

function settleBoth(draft: Draft, { heard, compute, baseline }: StageInput): void {
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
}

function settleGroup<T extends Size | number>(draft: Draft, opinions: readonly Opinion[], of: Group<T>): void {
  let won: Spoken<T> | undefined;
  const leading: Spoken<T>[] = [];
  for (const spoken of spokenOn(opinions, of)) {
    const { opinion, value } = spoken;
    const decided = opinion.leads ? isBeaten(opinion, won ? [...leading, won] : leading) : won !== undefined;
    const code = codeOf(spoken, decided);
    const step = { group: of.group, code, opinion, policy: opinion.policy };
    if (code === 'ready') leading.push(spoken);
    else if (value === undefined || code === 'outranked') note(draft, step);
    else {
      won = spoken;
      note(draft, { ...step, after: value });
    }
  }
  leadUp(draft, of, leading, won?.value ?? of.actual);
  if (won === undefined && leading.length === 0) note(draft, { group: of.group, code: 'no_opinion' });
}

/**
 * Whether a window that is about to open has nothing to prepare: one that comes before it in the order is open with a higher
 * priority, or still open when it starts, or starts no later. No `otherwise` comes before a window.
 */
function isBeaten({ policy, openSinceMs = 0 }: Opinion, better: readonly Spoken<unknown>[]): boolean {
  return better.some(({ opinion }) => {
    if (opinion.leads) return (opinion.openSinceMs ?? 0) <= openSinceMs;
    const window = opinion.policy.windows[opinion.windowIndex];
    return opinion.policy.priority > policy.priority || (window !== undefined && anyOpenAt(window.at, openSinceMs));
  });
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

/** Before windows that are to be in force by their start open, the larger of the old value and of theirs holds. */
function leadUp<T extends Size | number>(
  draft: Draft,
  { group, larger }: Group<T>,
  leading: readonly Spoken<T>[],
  old: T,
): void {
  let before = old;
  for (const { opinion, value } of leading.toReversed()) {
    const after = value === undefined ? before : larger(before, value);
    const step = { group, opinion, policy: opinion.policy };
    if (after === before) note(draft, { ...step, code: 'not_yet' });
    else note(draft, { ...step, code: 'ready', before, after });
    before = after;
  }
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
