import type { CompiledPolicies } from './compiled-policies.ts';
import { type Compute, type ComputeSettings, NEVER_SUSPENDS, type Size } from './compute.ts';
import { MAX_AUTOSCALING_CU } from './compute-units.ts';
import { isoInstant } from './instants.ts';
import type { Opinion, Wish } from './opinion.ts';
import type { ReasonCode } from './reasons.ts';

/** The two groups of fields that are decided, gated and reported together. */
export type FieldGroup = 'size' | 'suspend_timeout';

/** What a compute should have; null: no opinion, the field is left as it is. */
export interface Desired {
  size: Size | null;
  suspendTimeoutSeconds: number | null;
}

/** One step on the way to a decision; making sentences of it is left to those who show it. */
export interface TraceStep {
  group: FieldGroup;
  code: ReasonCode;
  /** What spoke; absent where nothing did. */
  opinion?: Opinion;
}

export interface Decision {
  instantMs: number;
  /** What all policies together want, also those that only observe. */
  desired: Desired;
  /** What the policies that may write want; the same as `desired` where no observing policy decides. */
  enforced: Desired;
  /** The opinion that decided each group of {@link desired}. */
  deciders: Partial<Record<FieldGroup, Opinion>>;
  /** The opinion that decided each group of {@link enforced}. */
  enforcedDeciders: Partial<Record<FieldGroup, Opinion>>;
  /** True if at least one policy selects the compute. */
  matched: boolean;
  trace: TraceStep[];
}

export interface DecideInput {
  policies: CompiledPolicies;
  compute: Compute;
  /** What the compute had when ebb first saw it; undefined before that. */
  baseline: ComputeSettings | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
}

/**
 * What a compute should have at an instant, and why. Pure: the same input gives the same decision, in the daemon, in a
 * plan and in a forecast. Source: docs/policies.md, "Which policy decides".
 */
export function decide(input: DecideInput): Decision {
  const { policies, compute, instantMs } = input;
  const heard = policies
    .opinionsAt(instantMs)
    .filter((opinion) => policies.selects(opinion.policyIndex, compute, instantMs));
  const matched = heard.length > 0 || selectedByAny(input);
  const all = settle(heard, input);
  const observing = heard.some((opinion) => opinion.policy.mode === 'observe');
  const enforcing = observing
    ? settle(
        heard.filter((opinion) => opinion.policy.mode === 'enforce'),
        input,
      )
    : all;
  return {
    instantMs,
    desired: all.desired,
    enforced: enforcing.desired,
    deciders: all.deciders,
    enforcedDeciders: enforcing.deciders,
    matched,
    trace: matched ? all.trace : [{ group: 'size', code: 'unmatched' }],
  };
}

function selectedByAny({ policies, compute, instantMs }: DecideInput): boolean {
  return policies.set.policies.some((_, index) => policies.selects(index, compute, instantMs));
}

interface Settled {
  desired: Desired;
  deciders: Partial<Record<FieldGroup, Opinion>>;
  trace: TraceStep[];
}

/** `heard` is in the order of the language, so the first opinion on a group of fields decides it. */
function settle(heard: readonly Opinion[], input: DecideInput): Settled {
  const trace: TraceStep[] = [];
  const deciders: Partial<Record<FieldGroup, Opinion>> = {};
  const size = settleGroup<Size>('size', heard, (opinion) => opinion.size, input.baseline, trace);
  const baselineTimeout = input.baseline?.suspendTimeoutSeconds;
  const timeout = settleGroup('suspend_timeout', heard, (o) => o.suspendTimeoutSeconds, baselineTimeout, trace);
  if (size) deciders.size = size.decider;
  if (timeout) deciders.suspend_timeout = timeout.decider;
  const wantedSize = size && { minCu: size.value.minCu, maxCu: size.value.maxCu };
  const desired = { size: wantedSize ?? null, suspendTimeoutSeconds: timeout?.value ?? null };
  return { desired: withPlatformRules(desired, input.compute, trace), deciders, trace };
}

function settleGroup<T>(
  group: FieldGroup,
  heard: readonly Opinion[],
  wishOf: (opinion: Opinion) => Wish<T> | undefined,
  baseline: T | undefined,
  trace: TraceStep[],
): { value: T; decider: Opinion } | undefined {
  let won: { value: T; decider: Opinion } | undefined;
  for (const opinion of heard) {
    const wish = wishOf(opinion);
    if (wish === undefined) continue;
    const value = wish === 'baseline' ? baseline : wish;
    const code = codeOf(opinion, wish, value !== undefined, won !== undefined);
    trace.push({ group, code, opinion });
    if (won === undefined && value !== undefined) won = { value, decider: opinion };
  }
  if (won === undefined) trace.push({ group, code: 'no_opinion' });
  return won;
}

function codeOf(opinion: Opinion, wish: unknown, known: boolean, decided: boolean): ReasonCode {
  if (decided) return 'outranked';
  if (!known) return 'baseline_unknown';
  if (wish === 'baseline') return 'baseline';
  return opinion.source === 'otherwise' ? 'otherwise' : 'window_open';
}

/** Which part of which policy speaks, and since when. */
export function describeOpinion({ policy, source, windowIndex, openSinceMs }: Opinion): string {
  if (source === 'otherwise') return `otherwise of ${policy.name}, priority ${policy.priority}`;
  const kind = source === 'absolute' ? 'interval' : 'window';
  const since = openSinceMs === undefined || !Number.isFinite(openSinceMs) ? 'ever' : isoInstant(openSinceMs);
  return `${kind} ${windowIndex + 1} of ${policy.name}, priority ${policy.priority}, open since ${since}`;
}

/**
 * The platform's own rules, last. A fixed size above 16 CU never suspends: without this the timeout would be sent, and
 * ignored, for ever. It concerns a wanted timeout only: without an opinion the field is left as it is.
 */
function withPlatformRules(desired: Desired, compute: Compute, trace: TraceStep[]): Desired {
  const size = desired.size ?? compute;
  if (desired.suspendTimeoutSeconds === null || desired.suspendTimeoutSeconds === NEVER_SUSPENDS) return desired;
  if (size.maxCu <= MAX_AUTOSCALING_CU) return desired;
  trace.push({ group: 'suspend_timeout', code: 'never_suspends' });
  return { ...desired, suspendTimeoutSeconds: NEVER_SUSPENDS };
}
