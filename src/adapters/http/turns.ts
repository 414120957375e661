import { setImmediate } from 'node:timers/promises';

/** Turns of the event loop. Answers are sent over sockets, which no simulated clock drives. */
export const TURNS = { nextTurn: (): Promise<void> => setImmediate() };
