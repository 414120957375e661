import type { Hold } from '../../overrides/holds.ts';
import { isoInstant } from '../../time/instants.ts';
import type { Change } from '../change.ts';
import type { Gate } from './gate.ts';

/** A person has said that the compute is to stay as it is; a newer hold that names the field comes before that. */
export const hold: Gate = ({ change, decision }) => {
  const keeping = decision.holds.find((one) => one.freeze || names(one, change.group));
  if (!keeping?.freeze || names(keeping, change.group)) return undefined;
  const { owner, reason, expiresAtMs } = keeping;
  return {
    code: 'held',
    message: `held as it is by ${owner} until ${isoInstant(expiresAtMs)}: ${reason}`,
    untilMs: expiresAtMs,
  };
};

function names({ size, suspendTimeoutSeconds }: Hold, group: Change['group']): boolean {
  return (
    (group === 'size' && size !== undefined) || (group === 'suspend_timeout' && suspendTimeoutSeconds !== undefined)
  );
}
