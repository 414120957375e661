import { isFightStopped } from '../../records/fights.ts';
import type { Gate } from './gate.ts';

/** A field over which ebb and somebody else have gone back and forth is left alone until a person releases it, or asks for a value. */
export const fightStopped: Gate = ({ change, record }) => {
  if (change.group === 'restart' || change.askedAtMs !== undefined) return undefined;
  if (!isFightStopped(record, change.group)) return undefined;
  return { code: 'fight_stopped', message: 'changed back too often; left alone until released: ebb release' };
};
