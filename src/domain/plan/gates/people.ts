import { valueOfGroup } from '../../compute/compute.ts';
import type { Hold } from '../../overrides/holds.ts';
import { notLoadedAmong, withoutNotLoaded } from '../../policy/team-parts.ts';
import { isFightStopped } from '../../records/fights.ts';
import { isoInstant } from '../../time/units.ts';
import type { Change } from '../change.ts';
import { describeManualChange, respectedUntil } from '../manual-changes.ts';
import type { Gate } from './gate.ts';

/** Holds all changes during a freeze, except raises if the freeze allows them. Also holds all changes by a team that has no policies in effect. */
export const freeze: Gate = ({ change, decision, freezes = [] }) => {
  const stopsChange = ({ allowRaise }: { allowRaise: boolean }) => !(allowRaise && change.raises);
  const byPolicy = withoutNotLoaded(decision.freezes).find(stopsChange);
  if (byPolicy) {
    const { policy, untilMs } = byPolicy;
    const until = untilMs === undefined ? '' : ` until ${isoInstant(untilMs)}`;
    const isAssumed = decision.trace.some((step) => step.code === 'selection_unknown' && step.policy === policy);
    const assumed = isAssumed ? ': it may select it, but its branch or the name of its project is not known' : '';
    const message = `${policy.name} freezes this compute${until}${assumed}`;
    return { code: 'frozen', message, ...(untilMs !== undefined && { untilMs }) };
  }
  const byPerson = freezes.find(stopsChange);
  if (byPerson) {
    const { owner, reason, expiresAtMs } = byPerson;
    const message = `frozen by ${owner} until ${isoInstant(expiresAtMs)}: ${reason}`;
    return { code: 'frozen', message, untilMs: expiresAtMs };
  }
  const notLoaded = notLoadedAmong(decision.freezes);
  if (!notLoaded) return undefined;
  const message = `the policies of ${notLoaded.team} are staged or can't be read, and it has no others: nothing is written`;
  return { code: 'not_loaded', message };
};

/** Holds changes if a person's hold keeps the compute as it is, unless a newer hold sets the field. */
export const hold: Gate = ({ change, decision }) => {
  const keeping = keepingHold(decision.holds, change.group);
  if (!keeping) return undefined;
  const { owner, reason, expiresAtMs } = keeping;
  const message = `held as it is by ${owner} until ${isoInstant(expiresAtMs)}: ${reason}`;
  return { code: 'held', message, untilMs: expiresAtMs };
};

/** The active hold that keeps a field as it is; undefined if there is none, or a newer hold sets the field. `holds` begins with the newest. */
export function keepingHold(holds: readonly Hold[], group: Change['group']): Hold | undefined {
  const decisive = holds.find((one) => one.freeze || setsField(one, group));
  return decisive?.freeze && !setsField(decisive, group) ? decisive : undefined;
}

function setsField(hold: Hold, group: Change['group']): boolean {
  return group !== 'restart' && valueOfGroup(group, hold) !== undefined;
}

/** Respects a manual change for a while. Only hard limits, urgent raises and later holds override it. */
export const manualChange: Gate = ({ change, record, nowMs, nextBoundaryAfter, manualChanges, trial }) => {
  if (change.group === 'restart' || change.hard || change.urgent) return undefined;
  const mark = record?.manual?.[change.group];
  if (!mark || mark.seenAtMs <= (change.askedAtMs ?? Number.NEGATIVE_INFINITY)) return undefined;
  const { group } = change;
  const rule = change.manualChanges ?? manualChanges ?? { kind: 'respect' };
  // In a trial both arms keep a manual change until the end of the period.
  const untilMs =
    trial?.periodEndMs(mark.seenAtMs) ?? respectedUntil(mark, rule, (afterMs) => nextBoundaryAfter(afterMs, group));
  if (nowMs >= untilMs) return undefined;
  const message = `${describeManualChange(group, record.lastApplied, mark.fields)}; respected until ${isoInstant(untilMs)}`;
  return { code: 'manual_change', message, untilMs };
};

/** Leaves a field alone after a fight, until a person releases it or sets it by a hold. */
export const fightStopped: Gate = ({ change, record }) => {
  if (change.group === 'restart' || change.askedAtMs !== undefined) return undefined;
  if (!isFightStopped(record, change.group)) return undefined;
  return { code: 'fight_stopped', message: 'changed back too often; left alone until released: ebb release' };
};

/** Holds all changes if the daemon or the policy only observes. */
export const observe: Gate = ({ mode, change }) => {
  if (mode === 'observe') return { code: 'observe', message: 'ebb runs in observe mode: nothing is written' };
  if (change.isObserved) return { code: 'observe', message: 'only policies that observe want it: nothing is written' };
  return undefined;
};
