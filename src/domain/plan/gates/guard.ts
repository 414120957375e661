import type { Change } from '../change.ts';
import type { Gate } from './gate.ts';

/**
 * Holds a lowering that would restart an awake compute unless all guards are healthy. Raises, and lowerings by a hold or a hard limit, never
 * wait.
 */
export const guard: Gate = ({ change, nowMs, guards, nextBoundaryAfter }) => {
  if (!asksGuards(change)) return undefined;
  const objecting = guards.find(({ verdict }) => verdict.state !== 'healthy');
  if (!objecting) return undefined;
  const { policy, verdict } = objecting;
  const untilMs = nextBoundaryAfter(nowMs, 'size');
  const message = `guard ${policy} is ${verdict.state}: ${verdict.message}; waiting until it is healthy`;
  return { code: 'guard', message, ...(untilMs !== undefined && { untilMs }) };
};

/** True for a lowering that would restart an awake compute, unless a hold or a hard limit demands it. */
export function asksGuards({ group, disconnects, raises, hard, askedAtMs }: Change): boolean {
  return group === 'size' && disconnects && !raises && !hard && askedAtMs === undefined;
}
