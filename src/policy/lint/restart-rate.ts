import { formatDuration } from '../../domain/compute/compute-units.ts';
import { atMostAllowed, atMostText } from '../../domain/plan/gates/disruption.ts';
import { type AtMost, resolveDisruption } from '../../domain/policy/disruption.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { Span } from '../../domain/time/span.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';

/** Openings of a window that are compared: the shortest is usually among the first. */
const MAX_OPENINGS = 50;

/** Finds an `at_most` that allows less than one compute, or so few that one change of all computes is not complete before the next. */
export const restartRate: LintRule = function* (context) {
  for (const policy of context.policies) {
    const limit = policy.disruption?.atMost;
    if (!limit) continue;
    const selected = context.overlap.computesOf(policy)?.length;
    const message = lessThanOne(limit, selected) ?? tooSlow(policy, limit, selected, context);
    if (message) yield { code: 'restart-rate', policy, at: ['disruption', 'at_most'], message } satisfies Remark;
  }
};

function lessThanOne({ share, windowMs }: AtMost, selected: number | undefined): string | undefined {
  if (!selected || selected === 1 || selected * share >= 1) return undefined;
  const time = formatDuration(windowMs / 1000);
  return `${Math.round(share * 100)}% of ${selected} computes is less than one, so one is restarted in ${time} all the same; write a larger share`;
}

function tooSlow(policy: Policy, limit: AtMost, selected: number | undefined, context: LintContext) {
  // The number of time windows that a change of all computes takes; without a fleet, the minimum for any number of computes.
  const windowCount = selected === undefined ? 1 / limit.share : selected / atMostAllowed(selected, limit);
  const neededMs = (Math.ceil(windowCount - 1e-9) - 1) * limit.windowMs;
  const shortest = shortestOf(policy, context);
  if (!shortest || neededMs <= shortest.toMs - shortest.fromMs) return undefined;
  const [needed, time] = [neededMs, shortest.toMs - shortest.fromMs].map((ms) => formatDuration(ms / 1000));
  return [
    `with ${atMostText(limit)} a change of all computes takes ${needed} if they are awake, but the next one is due ${time} after that of `,
    `${isoInstant(shortest.fromMs)}; write a larger share or a shorter time`,
  ].join('');
}

/** The shortest time from a change that may restart the policy's computes to its next change. */
function shortestOf(policy: Policy, context: LintContext): Span | undefined {
  let shortest: Span | undefined;
  for (const span of timesOfChanges(policy).flatMap((specs) => [...changesOf(specs, policy, context)])) {
    if (!shortest || span.toMs - span.fromMs < shortest.toMs - shortest.fromMs) shortest = span;
  }
  return shortest;
}

function timesOfChanges(policy: Policy): (readonly TimeSpec[])[] {
  const rule = ruleOf(policy);
  const restartsAt = rule.restartsAt(policy);
  if (restartsAt) return [restartsAt];
  return rule
    .windows(policy)
    .filter(({ size }) => size !== undefined)
    .map(({ at }) => at);
}

/** The times from one change to the next, assuming that windows raise sizes and their ends lower them. Changes that wait for sleep don't count. */
function* changesOf(specs: readonly TimeSpec[], policy: Policy, context: LintContext): Iterable<Span> {
  const { raise, lower } = resolveDisruption(policy.disruption, context.disruption);
  const isRestart = ruleOf(policy).restartsAt(policy) !== undefined;
  const times = context.openings.of(specs);
  let openMs = times.nextStartAfter(context.nowMs);
  for (let count = 0; openMs !== undefined && count < MAX_OPENINGS; count += 1) {
    const closeMs = times.nextChangeAfter(openMs);
    if (closeMs === undefined) return;
    const nextMs = times.nextStartAfter(closeMs - 1);
    if (isRestart || raise.when !== 'idle') yield { fromMs: openMs, toMs: closeMs };
    if (!isRestart && lower.when !== 'idle' && nextMs !== undefined) yield { fromMs: closeMs, toMs: nextMs };
    openMs = nextMs;
  }
}
