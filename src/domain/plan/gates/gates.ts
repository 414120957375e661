import { budgetReset } from './budget-reset.ts';
import { atMost, atOnce, cooldown, deadline, disruption, newlyDiscovered, renamed } from './disruption.ts';
import { answerUnknown, failedBefore, operationRunning } from './earlier-writes.ts';
import { endsSoon } from './ends-soon.ts';
import type { Gate } from './gate.ts';
import { guard } from './guard.ts';
import { readingLags } from './lag.ts';
import { fightStopped, freeze, hold, manualChange, observe } from './people.ts';
import { trialFlip } from './trial-flip.ts';

/**
 * All gates in the order of evaluation; the first that holds a change gives the reason. `disruption` holds until a deadline, `deadline`
 * skips after it. The limits `atOnce` and `atMost` come last, so that they only count changes that would otherwise be made.
 */
export const GATES: readonly Gate[] = [
  observe,
  freeze,
  hold,
  renamed,
  readingLags,
  newlyDiscovered,
  manualChange,
  trialFlip,
  budgetReset,
  fightStopped,
  answerUnknown,
  operationRunning,
  failedBefore,
  cooldown,
  disruption,
  deadline,
  endsSoon,
  guard,
  atOnce,
  atMost,
];
