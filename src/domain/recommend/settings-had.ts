import { type Compute, type ComputeSettings, FIELD_GROUPS, fieldsOf, settingsOf } from '../compute/compute.ts';
import { widestSettings } from '../forecast/expected.ts';
import { type ChangeFacts, lastChangeMs } from '../records/compute-record.ts';
import type { Span } from '../time/span.ts';
import { HOUR_MS, WEEK_MS } from '../time/units.ts';
import type { Rules } from './saving.ts';

/** A part of the past, without the hours of changes. */
interface Part {
  had: ComputeSettings;
  span: Span;
}

interface KnownCompute {
  compute: Compute;
  /** Absent: the present settings. */
  baseline?: ComputeSettings | undefined;
  changes?: ChangeFacts | undefined;
}

/** The settings that a compute had in a past, and the rules for the part of it in which it had them. */
export function settingsHad(known: KnownCompute, rules: Rules): { had: ComputeSettings; rules: Rules } {
  const [first, last] = [rules[0], rules.at(-1)];
  if (!first || !last) return { had: settingsOf(known.compute), rules };
  const { had, span } = judgedPart(known, { fromMs: first.fromMs, toMs: last.toMs });
  return { had, rules: within(rules, span) };
}

/**
 * Until ebb enforced, the baseline; since the last change, the present ones. The longer part is taken, if it
 * is at least a week. Otherwise the whole past with the widest range of both, except for fields that have been the same all the time.
 */
function judgedPart({ compute, baseline, changes = {} }: KnownCompute, past: Span): Part {
  const present = settingsOf(compute);
  const before = baseline ?? present;
  const { enforcedSinceMs } = changes;
  if (enforcedSinceMs === undefined) return { had: widestSettings(present, before), span: past };
  const changedMs = FIELD_GROUPS.map((group) => Math.max(past.fromMs, lastChangeMs(changes, group) ?? 0));
  const startMs = Math.max(past.fromMs, compute.createdAtMs);
  const parts: Part[] = [
    { had: before, span: { fromMs: startMs, toMs: Math.min(past.toMs, hourOf(enforcedSinceMs)) } },
    { had: present, span: { fromMs: hourOf(Math.max(startMs, ...changedMs) + HOUR_MS - 1), toMs: past.toMs } },
  ];
  const [longest] = parts.toSorted((one, other) => lengthMs(other) - lengthMs(one));
  if (longest && lengthMs(longest) >= WEEK_MS) return longest;
  const kept = FIELD_GROUPS.map((group, index) => changedMs[index] === past.fromMs && fieldsOf(group, present));
  return { had: Object.assign(widestSettings(present, before), ...kept), span: past };
}

function within(rules: Rules, { fromMs, toMs }: Span): Rules {
  const cut = rules.map((rule) => ({
    ...rule,
    fromMs: Math.max(rule.fromMs, fromMs),
    toMs: Math.min(rule.toMs, toMs),
  }));
  return cut.filter((rule) => rule.fromMs < rule.toMs);
}

const lengthMs = ({ span }: Part) => span.toMs - span.fromMs;

function hourOf(instantMs: number): number {
  return Math.floor(instantMs / HOUR_MS) * HOUR_MS;
}
