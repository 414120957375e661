import { expect } from 'vitest';
import { boundProperties, PROPERTY_SECONDS } from './property-bound.ts';

/** Set up before every test file. */

/** Files share a process, and an embedded store sets its umask. */
process.umask(0o022);

/** No property test goes on for longer than this, whatever it draws. */
boundProperties({
  limitMs: PROPERTY_SECONDS * 1000,
  runLimitMs: 4 * PROPERTY_SECONDS * 1000,
  tell: (line) => process.stderr.write(`${line}\n`),
  nameOf: () => expect.getState().currentTestName ?? 'a property',
});
