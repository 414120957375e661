import { isoInstant } from '../../domain/instants.ts';
import type { TimeSpec } from '../../domain/time-spec.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';
import { timesOf } from './times.ts';

/** Times that don't open in the time that lint looks at. */
export const neverOpens: LintRule = function* (context) {
  for (const policy of context.policies) {
    for (const { spec, at } of timesOf(policy, context)) {
      const message = isSureToOpen(spec) ? undefined : whyClosed(spec, context);
      if (message !== undefined) yield { code: 'never-opens', policy, at, message } satisfies Remark;
    }
  }
};

/** Every week, but for at most one day on which the clocks change. */
function isSureToOpen(spec: TimeSpec): boolean {
  return spec.kind === 'always' || (spec.kind === 'weekly' && !spec.dates);
}

function whyClosed(spec: TimeSpec, { openings, nowMs, endMs }: LintContext): string | undefined {
  if (spec.kind === 'interval' && spec.endMs <= nowMs) return `ended at ${isoInstant(spec.endMs)}; remove it`;
  if (spec.kind === 'interval' && spec.startMs >= endMs) {
    return `does not open before ${isoInstant(spec.startMs)}, in more than two years`;
  }
  const { isOpenAt, nextStartAfter } = openings.of([spec]);
  if (isOpenAt(nowMs) || nextStartAfter(nowMs) !== undefined) return undefined;
  return 'never opens in the next two years; change its days or calendars, or remove it';
}
