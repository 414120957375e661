import { channel } from 'node:diagnostics_channel';

/** Long waits of this process, each as one line for people. Code that writes for people listens. */
export const WAITS = channel('ebb:waits');
