import { expect } from 'vitest';

/** Waits for what `read` gives to become as expected, for long: a machine that tests in parallel can be slow. */
export function eventually<T>(read: () => T | Promise<T>) {
  return expect.poll(read, { timeout: 15_000, interval: 20 });
}
