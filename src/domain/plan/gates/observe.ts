import type { Gate } from './gate.ts';

/** Nothing is written in observe mode, of the daemon or of the policy. */
export const observe: Gate = ({ mode, change }) => {
  if (mode === 'observe') return { code: 'observe', message: 'ebb runs in observe mode: nothing is written' };
  if (change.observed) return { code: 'observe', message: 'only policies that observe want it: nothing is written' };
  return undefined;
};
