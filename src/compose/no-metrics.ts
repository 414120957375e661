import type { Metrics } from '../ports/telemetry.ts';

/** For commands that end: nobody scrapes them. */
export const NO_METRICS: Metrics = { increment: () => {}, set: () => {}, clear: () => {}, observe: () => {} };
