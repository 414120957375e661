import { countedComputes } from '../../common/names.ts';
import type { Confirmable, OperatorError } from '../../ports/operator.ts';

/**
 * Why a command that changes so many computes is refused: the number that was agreed to is another one, or there are several computes and
 * no number, where one is required. Undefined if it may go on.
 */
export function unconfirmed(
  { confirm }: Confirmable,
  count: number,
  isRequired = false,
): { ok: false; error: OperatorError } | undefined {
  if (confirm === undefined ? !isRequired || count <= 1 : confirm === count) return undefined;
  const asked = confirm === undefined ? '' : ` now, and ${confirm} ${confirm === 1 ? 'was' : 'were'} confirmed`;
  const message = `this concerns ${countedComputes(count)}${asked}: nothing was changed; preview it, and confirm ${count}`;
  return { ok: false, error: { code: 'unconfirmed', message } };
}
