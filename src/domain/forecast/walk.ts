import {
  type Compute,
  type ComputeSettings,
  hasSettings,
  isRaise,
  type Size,
  sameSize,
  settingsOf,
} from '../compute/compute.ts';
import { type Decision, decide } from '../decide/decide.ts';
import type { Hold } from '../overrides/holds.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { Policy } from '../policy/policy.ts';
import type { ForecastSubject } from './compute-groups.ts';

/** A time span in which no value changes. Milliseconds since the epoch. */
export interface Segment extends ComputeSettings {
  fromMs: number;
  /** The exclusive end. */
  toMs: number;
  /** The policies that decided the values, in the order in which they first did; empty where nothing sets a value. */
  policies: readonly string[];
}

/** A change of the size at the instant at which it is wanted. */
export interface Resize {
  /** Milliseconds since the epoch. */
  atMs: number;
  size: Size;
  /** The deciding policy; absent for a person's hold. */
  policy?: Pick<Policy, 'name' | 'priority' | 'disruption'> | undefined;
}

/** A time span in which sizes are not changed. Milliseconds since the epoch. */
export interface FrozenSpan {
  fromMs: number;
  /** The exclusive end; infinity until the walk reaches it. */
  toMs: number;
  allowRaise: boolean;
}

/** Simulates the settings of one compute over time. */
export interface Walk {
  /** The changes so far, ascending. */
  readonly resizes: readonly Resize[];
  /** The frozen spans so far, by freezes or holds, ascending. */
  readonly frozen: readonly FrozenSpan[];
  /** Advances to an instant at which a decision may change; instants must ascend. */
  step(instantMs: number): void;
  /** The segments so far, cut to this span. */
  segmentsIn(span: { fromMs: number; toMs: number }): Segment[];
}

/** Starts a walk with the present settings. A field that nothing sets keeps its last value. */
export function startWalk(policies: CompiledPolicies, { holds, ...subject }: ForecastSubject): Walk {
  const { baseline = settingsOf(subject.compute), trials, floors } = subject;
  // Changed in place, since selections are cached by the identity of this object and do not depend on settings.
  const compute = { ...subject.compute };
  const segments: (ComputeSettings & { fromMs: number; deciders: Set<string> })[] = [];
  const resizes: Resize[] = [];
  const frozen: FrozenSpan[] = [];
  return {
    resizes,
    frozen,
    step(instantMs) {
      const decision = decide({ policies, compute, baseline, trials, floors, instantMs, holds });
      updateFrozen(frozen, freezeOf(decision), instantMs);
      const { minCu, maxCu } = compute;
      Object.assign(compute, changesOf(decision, compute));
      if (!sameSize(compute, { minCu, maxCu })) resizes.push(resizeOf(decision, compute, instantMs));
      const last = segments.at(-1);
      const deciders = last && hasSettings(last, compute) ? last.deciders : new Set<string>();
      for (const name of decidersOf(decision)) deciders.add(name);
      if (deciders !== last?.deciders) segments.push({ ...settingsOf(compute), fromMs: instantMs, deciders });
    },
    segmentsIn({ fromMs, toMs }) {
      const first = segments.findLastIndex((segment) => segment.fromMs <= fromMs);
      return segments.slice(first).map(({ deciders, ...segment }, index) => ({
        ...segment,
        fromMs: Math.max(segment.fromMs, fromMs),
        toMs: segments[first + index + 1]?.fromMs ?? toMs,
        policies: [...deciders],
      }));
    },
  };
}

/** The changes that would be written: the enforced values; during a freeze at most an allowed raise. */
function changesOf(decision: Decision, compute: Compute): Partial<ComputeSettings> {
  const { size, suspendTimeoutSeconds } = decision.enforced;
  const freeze = freezeOf(decision);
  if (freeze) return size !== null && freeze.allowRaise && isRaise(compute, size) ? size : {};
  return { ...size, ...(suspendTimeoutSeconds !== null && { suspendTimeoutSeconds }) };
}

function freezeOf({ freezes, holds }: Decision): Pick<FrozenSpan, 'allowRaise'> | undefined {
  if (holds.some(({ freeze }) => freeze)) return { allowRaise: false };
  return freezes.length > 0 ? { allowRaise: freezes.every(({ allowRaise }) => allowRaise) } : undefined;
}

/** Ends or begins a frozen span when the freeze changes. */
function updateFrozen(frozen: FrozenSpan[], freeze: ReturnType<typeof freezeOf>, instantMs: number): void {
  const last = frozen.at(-1);
  const open = last?.toMs === Number.POSITIVE_INFINITY ? last : undefined;
  if (open?.allowRaise === freeze?.allowRaise) return;
  if (open) open.toMs = instantMs;
  if (freeze) frozen.push({ ...freeze, fromMs: instantMs, toMs: Number.POSITIVE_INFINITY });
}

function resizeOf({ enforcedDeciders }: Decision, { minCu, maxCu }: Compute, atMs: number): Resize {
  return { atMs, size: { minCu, maxCu }, policy: enforcedDeciders.size?.policy };
}

function decidersOf({ enforcedDeciders, freezes, holds }: Decision): string[] {
  const freezing = [...holds.filter(({ freeze }) => freeze).map(nameOf), ...freezes.map(({ policy }) => policy.name)];
  if (freezing.length > 0) return freezing;
  return [enforcedDeciders.size, enforcedDeciders.suspend_timeout].flatMap((step) => {
    if (step?.policy) return [step.policy.name];
    return step?.hold ? [nameOf(step.hold)] : [];
  });
}

function nameOf({ owner }: Hold): string {
  return `hold by ${owner}`;
}
