import { expect } from 'vitest';
import { boundProperties, PROPERTY_SECONDS } from './property-bound.ts';

/** Set up for every test file: no property test goes on for longer than this, whatever it draws. */
boundProperties({
  limitMs: PROPERTY_SECONDS * 1000,
  runLimitMs: 4 * PROPERTY_SECONDS * 1000,
  tell: (line) => process.stderr.write(`${line}\n`),
  nameOf: () => expect.getState().currentTestName ?? 'a property',
});
