/** Jobs that a scheduler makes; they only add the real job. */
export const TICK = 'tick';

/** Every other job. */
export const WORK = 'work';
