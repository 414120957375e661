import { isoInstant } from '../instants.ts';
import type { Gate } from './gate.ts';

/** A person has said that the compute is to stay as it is. */
export const hold: Gate = ({ decision }) => {
  const keeping = decision.holds.find((one) => one.freeze);
  if (!keeping) return undefined;
  const { owner, reason, expiresAtMs } = keeping;
  return {
    code: 'held',
    message: `held as it is by ${owner} until ${isoInstant(expiresAtMs)}: ${reason}`,
    untilMs: expiresAtMs,
  };
};
