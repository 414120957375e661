/** Traces as short lines, so that a test can show a whole one. */

import type { FieldGroup } from '../../../src/domain/compute/compute.ts';
import type { Decision } from '../../../src/domain/decide/decide.ts';
import { describeValue } from '../../../src/domain/decide/trace.ts';

/** `code who → value` for each step of a group: the value where the step gives one. */
export function traceOf({ trace }: Pick<Decision, 'trace'>, group: FieldGroup): string[] {
  return trace
    .filter((step) => step.group === group)
    .map(({ code, policy, hold, after }) => {
      const who = policy?.name ?? hold?.id;
      const value = after === undefined || after === null ? '' : ` → ${describeValue(after)}`;
      return `${code}${who === undefined ? '' : ` ${who}`}${value}`;
    });
}
