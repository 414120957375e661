import { expect } from 'vitest';

/** Waits for what `read` gives to become as expected, and looks more often than `expect.poll` does. */
export function eventually<T>(read: () => T | Promise<T>) {
  return expect.poll(read, { interval: 20 });
}
