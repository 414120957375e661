import { type AwakeFacts, type Figure, findCause } from '../awake/causes.ts';
import type { Compute, ComputeSettings } from '../compute/compute.ts';
import { formatSuspendTimeout } from '../compute/compute-units.ts';
import type { AccountPlan } from '../compute/cost.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import type { Estimate, Range } from '../estimate.ts';
import type { Floors, GuardFinding } from '../records/compute-record.ts';
import type { Span } from '../time/span.ts';

export const FINDING_KINDS = [
  'timeout',
  'window',
  'never_suspends',
  'minimum',
  'maximum',
  'unused',
  'preview',
  'awake',
  'guard',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** A lowering that a guard found harmful, and the policy that made it. */
export interface HarmFacts {
  finding: GuardFinding;
  /** The floors in effect now; none if the guard has `then: notify`. */
  floors: Floors;
  policy: { name: string; priority: number; zone: string };
  /** The settings that policies give the compute without floors. */
  rulesBetween(fromMs: number, toMs: number): readonly (ComputeSettings & Span)[];
}

/** The facts about one compute from which recommendations are derived. */
export interface RecommendFacts extends AwakeFacts {
  plan?: AccountPlan;
  /** US dollars per CU-hour. */
  price?: number;
  /** The number of connections that the compute accepts at each size. */
  profile: ConnectionProfile;
  /** What sets each group of fields now, such as `policy nights` or a hold. A finding about such a field gets no draft of a policy. */
  decided?: { size?: string; suspend_timeout?: string };
  /** The text in `decided` that means: policies for this compute are staged or can't be read, so it is not known whether they set the field. */
  unreadDecider?: string;
  /**
   * Looks up the settings that policies give the compute in the coming week if it begins with these settings. Costly: called only if a policy
   * decides a proposed field.
   */
  wanted?: (settings: ComputeSettings) => readonly ComputeSettings[];
  owner: string;
  /** When the timeout was last changed, milliseconds since the epoch; absent if ebb knows of no change. */
  timeoutSinceMs?: number;
  harm?: HarmFacts;
  /** The cost of one start of this compute, expressed in milliseconds awake; absent: the default. */
  coldStartWorthMs?: number;
}

/** Fields of a compute, with the control API's names. */
export interface Fields {
  suspend_timeout_seconds?: number;
  min_cu?: number;
  max_cu?: number;
}

/** A draft of a policy, without its full name, owner and selector. */
export interface PolicyDraft {
  /** The policy's name, without the owner before it and the number after it. */
  name: string;
  /** The policy's fields as in YAML. */
  body: { kind: 'limits' | 'schedule' } & Record<string, unknown>;
  /** The zone that the file needs; absent: any. */
  zone?: string;
  /** The country whose public holidays are the calendar `holidays` in the body. */
  holidays?: string;
}

export interface Finding {
  finding: FindingKind;
  compute: Compute;
  owner: string;
  now: Fields;
  proposed: Fields;
  figure: Figure;
  /** The saving in CU-hours per month of 730 h, with an 80 % interval. For `at_least` the low end is promised. */
  savesCuHours: Estimate;
  /** Other savings in US dollars per month, such as the price of a branch. */
  savesOtherUsd?: Estimate;
  /** The total saving in US dollars per month; absent if the price is unknown. */
  savesUsd?: Estimate;
  /** Set if a CU-hour costs nothing on the plan: then CU-hours are scarce, not dollars. */
  isFree?: true;
  startsMonth?: { before: number; after: Range };
  awakeShare?: { before: number; after: Range };
  evidence: string[];
  /** The risk of following the finding, in a sentence. */
  risk: string;
  policy?: PolicyDraft;
  /** The policy that will make this change anyway, such as `policy nights`. */
  doneBy?: string;
  /** The policy or hold that sets the field to another value, and so must itself be changed. */
  setBy?: string;
  /** Policies that are staged or can't be read, and may set the field. */
  mayBeSetBy?: string;
}

/** The ways in which the change of a finding is made: by a policy, or by `people` if no policy can. */
export const CHANGE_BY = ['proposed_policy', 'existing_policy', 'changed_policy', 'unread_policy', 'people'] as const;
export type ChangeBy = (typeof CHANGE_BY)[number];

export function changeBy({
  policy,
  doneBy,
  setBy,
  mayBeSetBy,
}: Partial<Record<'policy' | 'doneBy' | 'setBy' | 'mayBeSetBy', unknown>>): ChangeBy {
  if (policy) return 'proposed_policy';
  if (doneBy !== undefined) return 'existing_policy';
  if (setBy !== undefined) return 'changed_policy';
  return mayBeSetBy === undefined ? 'people' : 'unread_policy';
}

/** The saving in dollars; undefined if it is shown in CU-hours, since the plan is free or the price unknown. */
export function paidSaving({ savesUsd, isFree }: Pick<Finding, 'savesUsd' | 'isFree'>): Estimate | undefined {
  return isFree ? undefined : savesUsd;
}

/** A finding before its price is computed. */
export type Unpriced = Omit<Finding, 'savesUsd' | 'isFree' | 'owner' | 'compute'>;

/** The settings after a proposed change. */
export function withProposed(settings: ComputeSettings, proposed: Fields): ComputeSettings {
  return {
    minCu: proposed.min_cu ?? settings.minCu,
    maxCu: proposed.max_cu ?? settings.maxCu,
    suspendTimeoutSeconds: proposed.suspend_timeout_seconds ?? settings.suspendTimeoutSeconds,
  };
}

/** A draft of limits that let a compute sleep after this time, such as `5m`. */
export function sleepAfter(text: string): PolicyDraft {
  return { name: `sleep-after-${text}`, body: { kind: 'limits', suspend_after: { max: text } } };
}

/** A draft of limits that keep a compute awake for this time after its last client, such as `1h`. */
export function stayAwake(text: string): PolicyDraft {
  return { name: `awake-for-${text}`, body: { kind: 'limits', suspend_after: { min: text } } };
}

/** The cause of the awake time as evidence; empty if unknown. */
export function causeOf(facts: RecommendFacts): string[] {
  const found = findCause(facts);
  return found === undefined || found.cause === 'unknown' ? [] : [`${found.cause}: ${found.evidence[0]}`];
}

const LABELS: Readonly<Record<keyof Fields, string>> = {
  suspend_timeout_seconds: 'suspend_after',
  min_cu: 'minimum',
  max_cu: 'maximum',
};

/** The proposed changes, one text per field: `suspend_after 5m → 1m`. */
export function changesIn({ now, proposed }: Pick<Finding, 'now' | 'proposed'>): string[] {
  const fields = Object.keys(proposed) as (keyof Fields)[];
  return fields.map(
    (field) => `${LABELS[field]} ${fieldText(field, now[field])} → ${fieldText(field, proposed[field])}`,
  );
}

function fieldText(field: keyof Fields, value: number | undefined): string {
  if (value === undefined) return '?';
  return field === 'suspend_timeout_seconds' ? formatSuspendTimeout(value) : `${value} CU`;
}
