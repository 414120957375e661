import { describe, expect, it } from 'vitest';
import { findProgram, missing, type Requirement } from './programs.ts';

/**
 * A suite that needs a program. Without it the suite is skipped under its name, with a line that says what to install; with
 * CI set, where nothing may go untested unseen, that is a failure.
 */
export function describeWith(requirement: Requirement, name: string, suite: () => void): void {
  if (findProgram(requirement) !== undefined) {
    describe(name, suite);
    return;
  }
  const title = `${name} (${missing(requirement)})`;
  if (process.env.CI === undefined || process.env.CI === '' || process.env.CI === 'false') {
    describe.skip(title, suite);
    return;
  }
  describe(title, () => {
    it(`finds ${requirement}`, () => {
      expect.fail(missing(requirement));
    });
  });
}
