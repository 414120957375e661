import type { Compute, Usage } from './entities.ts';

export function noUsage(nowMs: number): Usage {
  return { settledAtMs: nowMs, activeMs: 0, cuMsLow: 0, cuMsHigh: 0, connectionsDropped: 0, restarts: 0 };
}

/** What a compute has used up to `nowMs`, without changing it. */
export function usageAt(compute: Compute, nowMs: number): Usage {
  const { usage } = compute;
  const activeMs = compute.state === 'active' ? Math.max(0, nowMs - usage.settledAtMs) : 0;
  return {
    settledAtMs: nowMs,
    activeMs: usage.activeMs + activeMs,
    cuMsLow: usage.cuMsLow + activeMs * compute.minCu,
    cuMsHigh: usage.cuMsHigh + activeMs * compute.maxCu,
    connectionsDropped: usage.connectionsDropped,
    restarts: usage.restarts,
  };
}

/** Must come before every change of a compute's state or size: what lies behind is weighed with the old ones. */
export function settleUsage(compute: Compute, nowMs: number): void {
  compute.usage = usageAt(compute, nowMs);
}
