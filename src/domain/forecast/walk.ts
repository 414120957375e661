import {
  type Compute,
  type ComputeSettings,
  hasSettings,
  type Size,
  sameSize,
  settingsOf,
} from '../compute/compute.ts';
import { type Decision, decide } from '../decide/decide.ts';
import type { Hold } from '../overrides/holds.ts';
import { isRaise } from '../plan/change.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { Policy } from '../policy/policy.ts';
import type { ForecastSubject } from './alike.ts';

/** A stretch of time in which no value changes. Milliseconds since the epoch. */
export interface Segment extends ComputeSettings {
  fromMs: number;
  /** Up to but not including. */
  toMs: number;
  /** Who decided the values, in the order in which they first did; empty where nothing sets a value. */
  policies: readonly string[];
}

/** A change of the size, as soon as it is wanted. */
export interface Resize {
  /** Milliseconds since the epoch. */
  atMs: number;
  size: Size;
  /** Absent where a person's hold wants it. */
  policy?: Pick<Policy, 'name' | 'priority' | 'disruption'> | undefined;
}

/** One compute on its way through time. */
export interface Walk {
  /** Those that were passed through, ascending. */
  readonly resizes: readonly Resize[];
  /** Goes on to an instant at which a decision may change; instants must ascend. */
  step(instantMs: number): void;
  /** What was passed through, as far as it is in this time. */
  segmentsIn(span: { fromMs: number; toMs: number }): Segment[];
}

/** Starts with what the compute has now. A field that nothing sets stays as the last change left it. */
export function startWalk(policies: CompiledPolicies, { holds, ...subject }: ForecastSubject): Walk {
  const { baseline = settingsOf(subject.compute), trials } = subject;
  // Changed in place: policies remember by identity which computes they select, and that does not depend on settings.
  const compute = { ...subject.compute };
  const passed: (ComputeSettings & { fromMs: number; deciders: Set<string> })[] = [];
  const resizes: Resize[] = [];
  return {
    resizes,
    step(instantMs) {
      const decision = decide({ policies, compute, baseline, trials, instantMs, holds });
      const { minCu, maxCu } = compute;
      Object.assign(compute, changesOf(decision, compute));
      if (!sameSize(compute, { minCu, maxCu })) resizes.push(resizeOf(decision, compute, instantMs));
      const last = passed.at(-1);
      const deciders = last && hasSettings(last, compute) ? last.deciders : new Set<string>();
      for (const name of decidersOf(decision)) deciders.add(name);
      if (deciders !== last?.deciders) passed.push({ ...settingsOf(compute), fromMs: instantMs, deciders });
    },
    segmentsIn({ fromMs, toMs }) {
      const first = passed.findLastIndex((segment) => segment.fromMs <= fromMs);
      return passed.slice(first).map(({ deciders, ...segment }, index) => ({
        ...segment,
        fromMs: Math.max(segment.fromMs, fromMs),
        toMs: passed[first + index + 1]?.fromMs ?? toMs,
        policies: [...deciders],
      }));
    },
  };
}

/** What is written: all that is enforced, unless it is frozen; then at most a raise. */
function changesOf({ enforced, freezes, holds }: Decision, compute: Compute): Partial<ComputeSettings> {
  const { size, suspendTimeoutSeconds } = enforced;
  if (holds.some(({ freeze }) => freeze)) return {};
  if (freezes.length > 0) {
    const raised = size !== null && freezes.every(({ allowRaise }) => allowRaise) && isRaise(compute, size);
    return raised ? size : {};
  }
  return { ...size, ...(suspendTimeoutSeconds !== null && { suspendTimeoutSeconds }) };
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
