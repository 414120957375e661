import { connectionsAt } from '../../domain/connections/connections.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeEvent } from '../../ports/notifier.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Samples } from './samples.ts';

/** Counts whom a change has disconnected, as far as that is known: those who were connected when it was made. */
export function countDropped(
  { samples, clock, telemetry }: { samples: Samples; clock: Clock; telemetry: Telemetry },
  event: ComputeEvent,
): void {
  if (event.kind !== 'write_ended' || event.outcome !== 'applied' || !event.action.disconnects) return;
  const { compute, action } = event;
  const dropped = connectionsAt(samples.historyOf(compute.computeId), compute, clock.now()) ?? 0;
  telemetry.metrics.increment('ebb_connections_dropped_total', { policy: action.policy }, dropped);
}
