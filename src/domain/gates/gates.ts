import { answerUnknown } from './answer-unknown.ts';
import { failedBefore } from './failed-before.ts';
import { firstSight } from './first-sight.ts';
import type { Gate } from './gate.ts';
import { observe } from './observe.ts';
import { operationRunning } from './operation-running.ts';

/** Every gate in the order in which they are asked; the first that holds a change gives the reason. */
export const GATES: readonly Gate[] = [observe, firstSight, answerUnknown, operationRunning, failedBefore];
