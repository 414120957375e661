import { channel } from 'node:diagnostics_channel';

/** Receives one line of text at the beginning of each long wait. Commands print the line. */
export const WAITS = channel('ebb:waits');
