import type { Gate } from './gate.ts';

/**
 * Holds a lowering that would restart an awake compute unless all guards are healthy. Raises, and what a person or a hard limit demands,
 * never wait.
 */
export const guard: Gate = ({ change, nowMs, guards, nextBoundaryAfter }) => {
  if (change.group !== 'size' || !change.disconnects || change.raises) return undefined;
  if (change.hard || change.askedAtMs !== undefined) return undefined;
  const objecting = guards.find(({ verdict }) => verdict.state !== 'healthy');
  if (!objecting) return undefined;
  const { policy, verdict } = objecting;
  const untilMs = nextBoundaryAfter(nowMs, 'size');
  const message = `guard ${policy} is ${verdict.state}: ${verdict.message}; waiting until it is healthy`;
  return { code: 'guard', message, ...(untilMs !== undefined && { untilMs }) };
};
