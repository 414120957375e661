import { resolveDisruption } from '../../policy/disruption.ts';
import { isoInstant } from '../../time/instants.ts';
import type { Gate } from './gate.ts';

/** Between two changes that restart the same compute. It never delays a raise after a lowering, nor one that is urgent. */
export const cooldown: Gate = ({ change, record, nowMs, disruption }) => {
  const last = record?.lastDisruption;
  if (!change.disconnects || change.urgent || !last) return undefined;
  if (change.raises && last.lowered) return undefined;
  const untilMs = last.atMs + resolveDisruption(change.disruption, disruption).cooldownMs;
  if (nowMs >= untilMs) return undefined;
  return {
    code: 'cooldown',
    message: `restarted at ${isoInstant(last.atMs)}; not again before ${isoInstant(untilMs)}`,
    untilMs,
  };
};
