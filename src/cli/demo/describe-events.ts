import pc from 'picocolors';
import type { DaemonEvent } from '../../compose.ts';
import type { ReasonCode } from '../../domain/compute/reasons.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/settings-text.ts';
import type { WorldEvent } from '../../emulator/world/entities.ts';

/** What the daemon did, as a line of the day; undefined for what is no news. */
export function describeDaemonEvent(event: DaemonEvent): string | undefined {
  switch (event.kind) {
    case 'write_ended':
      return describeWrite(event);
    case 'operation_ended': {
      const { action, status, totalDurationMs, createdAtMs, updatedAtMs } = event.operation;
      const seconds = ((totalDurationMs ?? updatedAtMs - createdAtMs) / 1000).toFixed(1);
      return pc.dim(`└ ${action} ${status}, took ${seconds} s`);
    }
    case 'held_back':
      return pc.yellow(`waits: ${event.plan.reasons.at(-1)?.message ?? ''}`);
    case 'degraded':
      return pc.red(`can't be changed: ${event.message}`);
    default:
      return undefined;
  }
}

/** What happened on the platform, whoever caused it; undefined for what is no news: also what a restart by ebb brings. */
export function describePlatformEvent(event: WorldEvent, restarting: ReadonlySet<string>): string | undefined {
  if (event.type === 'dropped') return pc.magenta(`${event.connections} connections dropped; the clients reconnect`);
  if (event.type !== 'state' || event.state === 'init' || restarting.has(event.computeId)) return undefined;
  return pc.dim(event.state === 'active' ? 'awake: a client came' : 'asleep');
}

/** What a policy says of itself, where it is not that its window is open. */
const WHY: Partial<Record<ReasonCode, string>> = {
  otherwise: 'outside its windows',
  headroom: 'for its connections',
  stabilising: 'for its connections',
};

function describeWrite({ compute, action, outcome, reasons }: Extract<DaemonEvent, { kind: 'write_ended' }>): string {
  const after = { ...compute, ...action.fields };
  const parts: string[] = [];
  if (action.fields.maxCu !== undefined) parts.push(`${formatSize(compute)} → ${formatSize(after)} CU`);
  if (action.fields.suspendTimeoutSeconds !== undefined) {
    const [from, to] = [compute, after].map(({ suspendTimeoutSeconds }) => formatSuspendTimeout(suspendTimeoutSeconds));
    parts.push(`sleeps after ${from} → ${to}`);
  }
  const what = parts.join(', ');
  if (outcome !== 'applied') return pc.yellow(`${what}: not now (${outcome}), ebb looks again`);
  const how = action.disconnects ? pc.magenta('restarts') : 'disturbs nobody';
  const why = (reasons[0] && WHY[reasons[0].code]) ?? 'in its window';
  return `${pc.bold(what)}  ${pc.cyan(action.policy)}, ${why}; ${how}`;
}
