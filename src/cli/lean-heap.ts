import { setFlagsFromString } from 'node:v8';

/** How much the heap may grow beyond what is in use before it is collected as a whole, in per cent. V8 takes up to 300. */
const GROWTH_PERCENT = 40;

/**
 * A daemon holds a fleet for months and makes garbage in bursts. Left alone V8 waits until the heap is a few times what is in use, and
 * gives the machine little of it back; docs/benchmarks.md has the figures.
 */
export function keepHeapLean(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
