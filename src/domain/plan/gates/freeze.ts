import { isoInstant } from '../../time/instants.ts';
import type { Gate } from './gate.ts';

/** While a freeze is in force nothing is written, except raises where it allows them. */
export const freeze: Gate = ({ change, decision, freezes = [] }) => {
  const byPolicy = decision.freezes.find(({ allowRaise }) => !(allowRaise && change.raises));
  if (byPolicy) {
    const { policy, untilMs } = byPolicy;
    const until = untilMs === undefined ? '' : ` until ${isoInstant(untilMs)}`;
    const isAssumed = decision.trace.some((step) => step.code === 'selection_unknown' && step.policy === policy);
    const assumed = isAssumed ? ': it may select it, but its branch or the name of its project is not known' : '';
    const message = `${policy.name} freezes this compute${until}${assumed}`;
    return { code: 'frozen', message, ...(untilMs !== undefined && { untilMs }) };
  }
  const byPerson = freezes.find(({ allowRaise }) => !(allowRaise && change.raises));
  if (!byPerson) return undefined;
  const { owner, reason, expiresAtMs } = byPerson;
  const message = `frozen by ${owner} until ${isoInstant(expiresAtMs)}: ${reason}`;
  return { code: 'frozen', message, untilMs: expiresAtMs };
};
