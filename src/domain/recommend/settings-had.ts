import { type Compute, type ComputeSettings, FIELD_GROUPS, fieldsOf, settingsOf } from '../compute/compute.ts';
import { widestSettings } from '../forecast/expected.ts';
import { type ChangeFacts, lastChangeMs } from '../records/compute-record.ts';
import type { Span } from '../time/span.ts';
import { HOUR_MS, WEEK_MS } from '../time/units.ts';
import type { SettingsOverTime } from './saving.ts';

/** A part of the past in which the settings were the same. */
interface PastPart {
  had: ComputeSettings;
  span: Span;
}

interface ComputePast {
  compute: Compute;
  /** Absent: the present settings. */
  baseline?: ComputeSettings | undefined;
  changes?: ChangeFacts | undefined;
}

/** The settings that a compute had in the time of these rules; and the rules, cut to the part of this time in which it had these settings. */
export function settingsHad(
  past: ComputePast,
  rules: SettingsOverTime,
): { had: ComputeSettings; rules: SettingsOverTime } {
  const [first, last] = [rules[0], rules.at(-1)];
  if (!first || !last) return { had: settingsOf(past.compute), rules };
  const { had, span } = partWithSettings(past, { fromMs: first.fromMs, toMs: last.toMs });
  return { had, rules: within(rules, span) };
}

/**
 * Until ebb enforced, a compute had its baseline; since the last change, it has its present settings. Returns the longer of these two parts,
 * without the hours of changes, if it lasts at least a week. Otherwise returns the whole span with the widest range of both settings; fields that
 * were the same all the time keep their value.
 */
function partWithSettings({ compute, baseline, changes = {} }: ComputePast, whole: Span): PastPart {
  const present = settingsOf(compute);
  const before = baseline ?? present;
  const { enforcedSinceMs } = changes;
  if (enforcedSinceMs === undefined) return { had: widestSettings(present, before), span: whole };
  const changedMs = FIELD_GROUPS.map((group) => Math.max(whole.fromMs, lastChangeMs(changes, group) ?? 0));
  const startMs = Math.max(whole.fromMs, compute.createdAtMs);
  const parts: PastPart[] = [
    { had: before, span: { fromMs: startMs, toMs: Math.min(whole.toMs, hourOf(enforcedSinceMs)) } },
    { had: present, span: { fromMs: hourOf(Math.max(startMs, ...changedMs) + HOUR_MS - 1), toMs: whole.toMs } },
  ];
  const [longest] = parts.toSorted((one, other) => lengthMs(other) - lengthMs(one));
  if (longest && lengthMs(longest) >= WEEK_MS) return longest;
  const unchanged = FIELD_GROUPS.map((group, index) => changedMs[index] === whole.fromMs && fieldsOf(group, present));
  return { had: Object.assign(widestSettings(present, before), ...unchanged), span: whole };
}

function within(rules: SettingsOverTime, { fromMs, toMs }: Span): SettingsOverTime {
  const cut = rules.map((rule) => ({
    ...rule,
    fromMs: Math.max(rule.fromMs, fromMs),
    toMs: Math.min(rule.toMs, toMs),
  }));
  return cut.filter((rule) => rule.fromMs < rule.toMs);
}

const lengthMs = ({ span }: PastPart) => span.toMs - span.fromMs;

function hourOf(instantMs: number): number {
  return Math.floor(instantMs / HOUR_MS) * HOUR_MS;
}
