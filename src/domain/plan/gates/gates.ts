import { atMost, atOnce, cooldown, deadline, disruption, newlyDiscovered, renamed } from './disruption.ts';
import { answerUnknown, failedBefore, operationRunning, readingLags } from './earlier-writes.ts';
import { endsSoon } from './ends-soon.ts';
import type { Gate } from './gate.ts';
import { guard } from './guard.ts';
import { budgetReset, trialFlip } from './no-restart.ts';
import { fightStopped, freeze, hold, manualChange, observe } from './people.ts';

/**
 * All gates in the order of evaluation; the first that holds a change gives the reason. `disruption` holds a change until its deadline;
 * `deadline` skips it after that. The limits `atOnce` and `atMost` come last, so that they only count changes that no other gate holds.
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
