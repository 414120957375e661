import type { Size } from '../compute/compute.ts';
import { REASONS } from '../compute/reasons.ts';
import { formatSize, formatSuspendTimeout } from '../compute/settings-text.ts';
import type { ProposedValues } from '../policy/proposed-value.ts';
import { isoInstant } from '../time/instants.ts';
import type { TraceStep } from './trace.ts';

/** A step of a trace for people: who spoke, and what it did. */
export function describeStep(step: TraceStep): string {
  const who = describeSpeaker(step);
  const change = describeEffect(step);
  const known = who ?? REASONS[step.code];
  return change === undefined ? known : `${known} (${change})`;
}

/** Which part of which policy, or which hold, speaks; undefined where nothing does. */
function describeSpeaker({ proposal, policy, hold, restore }: TraceStep): string | undefined {
  if (proposal) return describeOpinion(proposal);
  if (hold) return `hold of ${hold.owner} until ${isoInstant(hold.expiresAtMs)}: ${hold.reason}`;
  if (restore) return `back to the baseline, as ${restore.owner} asked`;
  return policy && `${policy.kind} ${policy.name}`;
}

function describeOpinion({ policy, source, windowIndex, openSinceMs, leads }: ProposedValues): string {
  if (source === 'otherwise') return `otherwise of ${policy.name}, priority ${policy.priority}`;
  const kind = source === 'absolute' ? 'interval' : 'window';
  const since = openSinceMs === undefined || !Number.isFinite(openSinceMs) ? 'ever' : isoInstant(openSinceMs);
  const when = leads ? `opens at ${since}` : `open since ${since}`;
  return `${kind} ${windowIndex + 1} of ${policy.name}, priority ${policy.priority}, ${when}`;
}

function describeEffect({ group, code, before, after, connections, minimum }: TraceStep): string | undefined {
  const parts: string[] = [];
  if (code === 'selection_unknown') parts.push('not known whether it selects this compute');
  if (before !== undefined && before !== null && after !== undefined && after !== null) {
    parts.push(`${describeValue(group, before)} → ${describeValue(group, after)}`);
  }
  if (connections) {
    const { peak, need, usable } = connections;
    parts.push(`peak ${peak} connections, ${need} needed, ${usable} usable`);
  }
  if (minimum) {
    parts.push(`the minimum of ${minimum.minCu} CU allows ${minimum.allowsCu} CU: write may_raise_min: true`);
  }
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** A value of a group as policies write it. */
export function describeValue(group: TraceStep['group'], value: Size | number): string {
  if (typeof value === 'number') return formatSuspendTimeout(value);
  return group === 'size' ? `${formatSize(value)} CU` : formatSize(value);
}
