import type { Size } from './compute.ts';
import { isoInstant } from './instants.ts';
import type { Opinion } from './opinion.ts';
import { REASONS } from './reasons.ts';
import { formatSize, formatSuspendTimeout } from './settings-text.ts';
import type { TraceStep } from './trace.ts';

/** A step of a trace for people: who spoke, and what it did. */
export function describeStep(step: TraceStep): string {
  const who = describeSpeaker(step);
  const change = describeEffect(step);
  const known = who ?? REASONS[step.code];
  return change === undefined ? known : `${known} (${change})`;
}

/** Which part of which policy, or which hold, speaks; undefined where nothing does. */
function describeSpeaker({ opinion, policy, hold, restore }: TraceStep): string | undefined {
  if (opinion) return describeOpinion(opinion);
  if (hold) return `hold of ${hold.owner} until ${isoInstant(hold.expiresAtMs)}: ${hold.reason}`;
  if (restore) return `back to the baseline, as ${restore.owner} asked`;
  return policy && `${policy.kind} ${policy.name}`;
}

function describeOpinion({ policy, source, windowIndex, openSinceMs, leads }: Opinion): string {
  if (source === 'otherwise') return `otherwise of ${policy.name}, priority ${policy.priority}`;
  const kind = source === 'absolute' ? 'interval' : 'window';
  const since = openSinceMs === undefined || !Number.isFinite(openSinceMs) ? 'ever' : isoInstant(openSinceMs);
  const when = leads ? `opens at ${since}` : `open since ${since}`;
  return `${kind} ${windowIndex + 1} of ${policy.name}, priority ${policy.priority}, ${when}`;
}

function describeEffect({ group, before, after, connections }: TraceStep): string | undefined {
  const parts: string[] = [];
  if (before !== undefined && before !== null && after !== undefined && after !== null) {
    parts.push(`${describeValue(group, before)} → ${describeValue(group, after)}`);
  }
  if (connections) {
    const { peak, need, usable } = connections;
    parts.push(`peak ${peak} connections, ${need} needed, ${usable} usable`);
  }
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** A value of a group as policies write it. */
export function describeValue(group: TraceStep['group'], value: Size | number): string {
  if (typeof value === 'number') return formatSuspendTimeout(value);
  return group === 'size' ? `${formatSize(value)} CU` : formatSize(value);
}
