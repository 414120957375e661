import { channel } from 'node:diagnostics_channel';

/** Long waits of this process, one line for people each: whoever writes for people listens. */
export const WAITS = channel('ebb:waits');
