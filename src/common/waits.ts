import { channel } from 'node:diagnostics_channel';

/** Gets one line for people at each long wait of this process; commands print it. */
export const WAITS = channel('ebb:waits');
