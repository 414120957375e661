import type { RulesReading, RulesSource } from '../../../src/ports/rules.ts';

/** A source of rules that has changed once a test gives it a reading, and until that is read. */
export function givenReadings(): { source: RulesSource; give(reading: RulesReading): void } {
  let next: RulesReading | undefined;
  return {
    source: {
      changed: async () => next !== undefined,
      async read() {
        const reading = next;
        next = undefined;
        if (!reading) throw new Error('nothing has changed');
        return reading;
      },
      writtenAgoMs: async () => new Map(),
    },
    give(reading) {
      next = reading;
    },
  };
}
