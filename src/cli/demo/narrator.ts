import { basename } from 'node:path';
import { DateTime } from 'luxon';
import pc from 'picocolors';
import type { DaemonEvent } from '../../compose/run-daemon.ts';
import { formatChange } from '../../domain/compute/compute-units.ts';
import type { ReasonCode } from '../../domain/compute/reasons.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { WorldEvent } from '../../emulator/world/entities.ts';
import { projectOf } from './platform.ts';
import { DAY_ZONE } from './working-day.ts';

export function introduce(policies: readonly Policy[]): void {
  process.stdout.write(`A working day of three teams and eight computes, under ${policies.length} policies:\n`);
  for (const { name, file } of policies) process.stdout.write(`  ${pc.cyan(name)}  ${pc.dim(basename(file))}\n`);
  process.stdout.write(`Times are those of ${DAY_ZONE}; where one ends with Z it is UTC.\n\n`);
}

/**
 * Prints the day, one line for each event: its (simulated) time, compute, change, reason and duration. The platform and the daemon report
 * their events at different moments, so lines are kept until the next tick, and then printed in order of time.
 */
export function createNarrator(now: () => number) {
  const out = process.stdout;
  /** Counts by compute. */
  const changes = new Map<string, number>();
  const lines: { atMs: number; project: string; text: string }[] = [];
  /** When the current write of a compute was sent. */
  const sentAtMs = new Map<string, number>();
  /** Computes that ebb restarts: their sleeping and waking is not shown. */
  const restarting = new Set<string>();

  return {
    changes,
    tellDaemonEvent(event: DaemonEvent): void {
      const { computeId, projectId } = event.compute;
      if (event.kind === 'write_started') {
        sentAtMs.set(computeId, now());
        if (event.action.disconnects) restarting.add(computeId);
      }
      if (event.kind === 'write_ended' && event.outcome === 'applied') {
        changes.set(computeId, (changes.get(computeId) ?? 0) + 1);
      }
      const text = describeDaemonEvent(event);
      if (text !== undefined) lines.push({ atMs: instantOf(event, sentAtMs, now()), project: projectId, text });
    },
    tellPlatformEvents(events: readonly WorldEvent[]): void {
      for (const event of events) {
        const text = describePlatformEvent(event, restarting);
        if (text !== undefined) lines.push({ atMs: event.atMs, project: projectOf(event.computeId ?? ''), text });
        if (event.type === 'state' && event.state === 'active') restarting.delete(event.computeId);
      }
    },
    /** Prints the kept lines; on a terminal also this instant, to show how far the day is. */
    narrateUntil(instantMs: number): void {
      if (out.isTTY) out.write('\r\u001b[2K');
      for (const { atMs, project, text } of lines.splice(0).sort((a, b) => a.atMs - b.atMs)) {
        out.write(`${pc.dim(clockTime(atMs))}  ${project.padEnd(18)} ${text}\n`);
      }
      if (out.isTTY) out.write(pc.dim(`${clockTime(instantMs)}  …`));
    },
  };
}

/** The instant of an event: when a change was sent, when an operation ended by the platform's time, otherwise now. */
function instantOf(event: DaemonEvent, sentAtMs: ReadonlyMap<string, number>, nowMs: number): number {
  if (event.kind === 'write_ended') return sentAtMs.get(event.compute.computeId) ?? nowMs;
  return event.kind === 'operation_ended' ? event.operation.updatedAtMs : nowMs;
}

/** `Mon 08:00:00` in the zone of the day. */
function clockTime(instantMs: number): string {
  return DateTime.fromMillis(instantMs, { zone: DAY_ZONE }).setLocale('en').toFormat('ccc HH:mm:ss');
}

/** A line about an event of the daemon; undefined for events that are not shown. */
function describeDaemonEvent(event: DaemonEvent): string | undefined {
  switch (event.kind) {
    case 'write_ended':
      return describeWrite(event);
    case 'operation_ended': {
      const { action, status, totalDurationMs, createdAtMs, updatedAtMs } = event.operation;
      const seconds = ((totalDurationMs ?? updatedAtMs - createdAtMs) / 1000).toFixed(1);
      return pc.dim(`└ ${action} ${status}, took ${seconds} s`);
    }
    case 'held_back':
      return pc.yellow(`waits: ${describeHeld(event)}`);
    case 'degraded':
      return pc.red(`can't be changed: ${event.message}`);
    default:
      return undefined;
  }
}

/** A line about an event of the platform. Undefined for events that are not shown, such as the sleep and the start within a restart by ebb. */
function describePlatformEvent(event: WorldEvent, restarting: ReadonlySet<string>): string | undefined {
  if (event.type === 'dropped') return pc.magenta(`${event.connections} connections dropped; the clients reconnect`);
  if (event.type !== 'state' || event.state === 'init' || restarting.has(event.computeId)) return undefined;
  return pc.dim(event.state === 'active' ? 'awake: a client came' : 'asleep');
}

/** Reasons other than an open window, in words. */
const WHY: Partial<Record<ReasonCode, string>> = {
  otherwise: 'outside its windows',
  headroom: 'for its connections',
  stabilising: 'for its connections',
};

function describeHeld({ compute, plan }: Extract<DaemonEvent, { kind: 'held_back' }>): string {
  const what = plan.held?.map(({ fields }) => formatChange(compute, fields)).join(', ');
  return `${what}: ${plan.waiting.at(-1)?.gate.message ?? ''}`;
}

function describeWrite({ compute, action, outcome, reasons }: Extract<DaemonEvent, { kind: 'write_ended' }>): string {
  const what = formatChange(compute, action.fields);
  if (outcome !== 'applied') return pc.yellow(`${what}: not now (${outcome}), ebb tries again`);
  const how = action.disconnects ? pc.magenta('restarts') : 'disturbs nobody';
  const why = (reasons[0] && WHY[reasons[0].code]) ?? 'in its window';
  return `${pc.bold(what)}  ${pc.cyan(action.policy)}, ${why}; ${how}`;
}
