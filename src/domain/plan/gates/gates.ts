import { answerUnknown } from './answer-unknown.ts';
import { atOnce } from './at-once.ts';
import { cooldown } from './cooldown.ts';
import { deadline, disruption } from './disruption.ts';
import { failedBefore } from './failed-before.ts';
import { fightStopped } from './fight-stopped.ts';
import { freeze } from './freeze.ts';
import type { Gate } from './gate.ts';
import { hold } from './hold.ts';
import { manualChange } from './manual-change.ts';
import { newlyDiscovered } from './newly-discovered.ts';
import { observe } from './observe.ts';
import { operationRunning } from './operation-running.ts';

/**
 * Every gate in the order in which they are asked; the first that holds a change gives the reason. `disruption` holds up to a
 * deadline, `deadline` what is skipped after it; so the budget counts only what would otherwise be made.
 */
export const GATES: readonly Gate[] = [
  observe,
  freeze,
  hold,
  newlyDiscovered,
  manualChange,
  fightStopped,
  answerUnknown,
  operationRunning,
  failedBefore,
  cooldown,
  disruption,
  deadline,
  atOnce,
];
