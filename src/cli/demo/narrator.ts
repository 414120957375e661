import { basename } from 'node:path';
import { DateTime } from 'luxon';
import pc from 'picocolors';
import type { DaemonEvent } from '../../compose.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { WorldEvent } from '../../emulator/world/entities.ts';
import { projectOf } from './demo-fleet.ts';
import { describeDaemonEvent, describePlatformEvent } from './describe-events.ts';
import { DAY_ZONE } from './working-day.ts';

export interface Narrator {
  /** What the daemon does. */
  effectivePolicies(event: DaemonEvent): void;
  /** What happens on the platform. */
  watch(events: readonly WorldEvent[]): void;
  /** Tells everything up to this instant; on a terminal it also shows how far the day is. */
  tellUntil(instantMs: number): void;
  /** How many changes were made, by compute. */
  changes: ReadonlyMap<string, number>;
}

/** What the day is about, before it begins. */
export function introduce(policies: readonly Policy[], out: NodeJS.WriteStream = process.stdout): void {
  out.write(`A working day of three teams and eight computes, under ${policies.length} policies:\n`);
  for (const { name, file } of policies) out.write(`  ${pc.cyan(name)}  ${pc.dim(basename(file))}\n`);
  out.write(`Times are those of ${DAY_ZONE}; where one ends with Z it is UTC.\n\n`);
}

interface Line {
  atMs: number;
  project: string;
  text: string;
}

/**
 * Tells the day, one line for each event: when (simulated), which compute, what changed, why, how long it took. The
 * platform and the daemon are heard at different moments, so lines are kept until both were, and told in order.
 */
export function createNarrator({ out, now }: { out: NodeJS.WriteStream; now: () => number }): Narrator {
  const changes = new Map<string, number>();
  const lines: Line[] = [];
  const writing = new Map<string, number>();
  /** Computes that ebb restarts: that they sleep and wake meanwhile is no news. */
  const restarting = new Set<string>();

  return {
    changes,
    effectivePolicies(event) {
      const { computeId, projectId } = event.compute;
      if (event.kind === 'write_started') {
        writing.set(computeId, now());
        if (event.action.disconnects) restarting.add(computeId);
      }
      if (event.kind === 'write_ended' && event.outcome === 'applied') {
        changes.set(computeId, (changes.get(computeId) ?? 0) + 1);
      }
      const text = describeDaemonEvent(event);
      if (text !== undefined) lines.push({ atMs: instantOf(event, writing, now()), project: projectId, text });
    },
    watch(events) {
      for (const event of events) {
        const text = describePlatformEvent(event, restarting);
        if (text !== undefined) lines.push({ atMs: event.atMs, project: projectOf(event.computeId ?? ''), text });
        if (event.type === 'state' && event.state === 'active') restarting.delete(event.computeId);
      }
    },
    tellUntil(instantMs) {
      if (out.isTTY) out.write('\r\u001b[2K');
      for (const { atMs, project, text } of lines.splice(0).sort((a, b) => a.atMs - b.atMs)) {
        out.write(`${pc.dim(clockTime(atMs))}  ${project.padEnd(18)} ${text}\n`);
      }
      if (out.isTTY) out.write(pc.dim(`${clockTime(instantMs)}  …`));
    },
  };
}

/** A change counts from when it was sent, an operation from when it ended by the platform's own time. */
function instantOf(event: DaemonEvent, writing: ReadonlyMap<string, number>, nowMs: number): number {
  if (event.kind === 'write_ended') return writing.get(event.compute.computeId) ?? nowMs;
  return event.kind === 'operation_ended' ? event.operation.updatedAtMs : nowMs;
}

/** `Mon 08:00:00` in the zone of the day. */
function clockTime(instantMs: number): string {
  return DateTime.fromMillis(instantMs, { zone: DAY_ZONE }).setLocale('en').toFormat('ccc HH:mm:ss');
}
