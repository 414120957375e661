import { didYouMean } from '../common/names.ts';
import type { Disruption, DisruptionRule, ManualChanges } from '../domain/policy/disruption.ts';
import type { PolicyBase } from '../domain/policy/policy-base.ts';
import { EVERY_COMPUTE, type Selector, withinScope } from '../domain/policy/selector.ts';
import type { Calendar, DateFilter } from '../domain/time/time-spec.ts';
import type { PolicyProblem } from './problem.ts';
import type { WrittenPolicy } from './reader.ts';
import type * as written from './schema/policy-base.ts';
import { qualifiedName, type Team } from './teams.ts';

/** The properties of a file that apply to its policies. */
export interface FileContext {
  file: string;
  timezone: string;
  owner: string | undefined;
  team: Team | undefined;
  groups: ReadonlyMap<string, Selector>;
  calendars: ReadonlyMap<string, Calendar>;
}

/** The parsed keys that every kind has. */
interface WrittenBase {
  name: string;
  select: string | Selector;
  priority: number;
  mode: 'enforce' | 'observe';
  disruption?: written.Disruption | undefined;
  manual_changes?: written.ManualChanges | undefined;
  notify?: string[] | undefined;
  notify_before?: number | undefined;
}

/** The fields of every kind. Absent keys stay absent, so that they don't change the hash of a set. */
export function toBase(policy: WrittenBase, { file, owner, team, groups }: FileContext): Omit<PolicyBase, 'kind'> {
  // An unknown group is reported elsewhere, and then there is no set.
  const select = typeof policy.select === 'string' ? (groups.get(policy.select) ?? EVERY_COMPUTE) : policy.select;
  return {
    name: qualifiedName(team, policy.name),
    file,
    ...(owner !== undefined && { owner }),
    ...(team && { team: team.name }),
    mode: policy.mode,
    select: team ? withinScope(select, team.projects) : select,
    priority: policy.priority,
    ...(policy.disruption && { disruption: toDisruption(policy.disruption) }),
    ...(policy.manual_changes && { manualChanges: toManualChanges(policy.manual_changes) }),
    ...(policy.notify && { notify: policy.notify }),
    ...(policy.notify_before !== undefined && { notifyBeforeMs: policy.notify_before }),
  };
}

/** The calendars that a window names. */
export function toDateFilter(
  { only, except }: { only?: string[] | undefined; except?: string[] | undefined },
  { calendars }: FileContext,
): DateFilter | undefined {
  if (only === undefined && except === undefined) return undefined;
  const named = (names: readonly string[]) => names.flatMap((name) => calendars.get(name) ?? []);
  return { ...(only && { only: named(only) }), ...(except && { except: named(except) }) };
}

/** Absent keys stay absent. */
export function toDisruption({
  raise,
  lower,
  quiet_below,
  cooldown,
  at_once,
  at_most,
  newly_discovered,
}: written.Disruption): Partial<Disruption> {
  return {
    ...(raise && { raise: toRule(raise) }),
    ...(lower && { lower: toRule(lower) }),
    ...(quiet_below !== undefined && { quietBelow: quiet_below }),
    ...(cooldown !== undefined && { cooldownMs: cooldown }),
    ...(at_once !== undefined && { atOnce: at_once }),
    ...(at_most && { atMost: at_most }),
    ...(newly_discovered !== undefined && { newlyDiscovered: newly_discovered }),
  };
}

function toRule(rule: NonNullable<written.Disruption['raise']>): DisruptionRule {
  const { when, deadline, then: atDeadline } = rule;
  return { when, ...(deadline !== undefined && { deadlineMs: deadline }), atDeadline };
}

export function toManualChanges(manual: written.ManualChanges): ManualChanges {
  return typeof manual === 'string' ? { kind: manual } : { kind: 'respect-for', forMs: manual.respect_for };
}

/** The receivers in `notify` of the settings. */
export type ReceiverNames = readonly { name: string }[];

/** Problems of `notify`, of a policy or one of its steps, with names that the settings don't define. */
export function unknownReceivers(written: readonly WrittenPolicy[], receivers: ReceiverNames): PolicyProblem[] {
  const known = receivers.map(({ name }) => name);
  return written.flatMap(({ at, valueAt, problemAt }) => {
    const steps = valueAt([...at, 'steps']);
    const places = [at, ...(Array.isArray(steps) ? steps.map((_, index) => [...at, 'steps', index]) : [])];
    return places.flatMap((place) => {
      const names = valueAt([...place, 'notify']);
      if (!Array.isArray(names)) return [];
      return names.flatMap((name, index) => {
        if (known.includes(name)) return [];
        const others =
          known.length > 0 ? `; there are ${known.slice(0, 20).join(', ')}` : '; "notify" of ebb.yaml has none';
        const hint = typeof name === 'string' ? didYouMean(name, known) || others : others;
        const message = `no receiver is named ${JSON.stringify(name)?.slice(0, 60)}${hint}`;
        return [problemAt([...place, 'notify', index], 'value', message)];
      });
    });
  });
}
