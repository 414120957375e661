import { type Figure, findCause } from '../awake/causes.ts';
import type { NamedClient, SessionFacts } from '../awake/clients.ts';
import type { AwakeHistory } from '../awake/intervals.ts';
import type { Compute, ComputeSettings } from '../compute/compute.ts';
import { formatSuspendTimeout } from '../compute/compute-units.ts';
import type { AccountPlan } from '../compute/cost.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import type { Estimate, Range } from '../estimate.ts';
import type { UsageBucket } from '../usage/usage.ts';

export const FINDING_KINDS = [
  ...(['timeout', 'window', 'never_suspends', 'minimum', 'maximum'] as const),
  ...(['unused', 'preview', 'awake'] as const),
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** The facts about one compute from which recommendations are derived. */
export interface RecommendFacts {
  compute: Compute;
  history: AwakeHistory;
  /** The branch's hourly usage, oldest first; absent if the branch has other computes. */
  hours?: readonly UsageBucket[];
  plan?: AccountPlan;
  /** US dollars per CU-hour. */
  price?: number;
  /** How many connections the compute accepts at each size. */
  profile: ConnectionProfile;
  /** What currently decides each group of fields, such as `policy nights` or a hold; findings do not contradict it. */
  decided?: { size?: string; suspend_timeout?: string };
  /** The settings that policies give it in the coming week; asked only where a policy decides. */
  wanted?: () => readonly ComputeSettings[];
  owner: string;
  /** The worth of one start of this compute, in milliseconds awake; absent: the default. */
  coldStartWorthMs?: number;
  /** What its Postgres has shown, if it was asked. */
  clients?: readonly NamedClient[];
  sessions?: SessionFacts;
}

/** Fields of a compute, with the control API's names. */
export interface Fields {
  suspend_timeout_seconds?: number;
  min_cu?: number;
  max_cu?: number;
}

/** A draft of a policy, without its full name, owner and selector. */
export interface PolicyDraft {
  /** The prefix of the policy's name. */
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
  /**
   * The saving in CU-hours per month of 730 h: what is to be expected, and where a coming month lies in 80 of 100 cases. For `at_least`
   * the low end is promised instead.
   */
  savesCuHours: Estimate;
  /** Other savings in US dollars per month, such as the price of a branch. */
  savesOtherUsd?: Estimate;
  /** The total saving in US dollars per month; absent if the price is unknown. */
  savesUsd?: Estimate;
  startsMonth?: { before: number; after: Range };
  awakeShare?: { before: number; after: Range };
  evidence: string[];
  /** The risk of following the finding, in a sentence. */
  risk: string;
  policy?: PolicyDraft;
  /** The policy that makes this change already, such as `policy nights`; the compute does not have it yet. */
  doneBy?: string;
}

/** A finding before its price is computed. */
export type Unpriced = Omit<Finding, 'savesUsd' | 'owner' | 'compute'>;

/** The settings with what is proposed. */
export function withProposed(settings: ComputeSettings, proposed: Fields): ComputeSettings {
  return {
    minCu: proposed.min_cu ?? settings.minCu,
    maxCu: proposed.max_cu ?? settings.maxCu,
    suspendTimeoutSeconds: proposed.suspend_timeout_seconds ?? settings.suspendTimeoutSeconds,
  };
}

/** A draft of limits that let a compute sleep after this time. */
export function sleepAfter(text: string): PolicyDraft {
  return { name: `sleep-after-${text}`, body: { kind: 'limits', suspend_after: { max: text } } };
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
  return (Object.keys(proposed) as (keyof Fields)[]).map((field) => {
    return `${LABELS[field]} ${fieldText(field, now[field])} → ${fieldText(field, proposed[field])}`;
  });
}

function fieldText(field: keyof Fields, value: number | undefined): string {
  if (value === undefined) return '?';
  return field === 'suspend_timeout_seconds' ? formatSuspendTimeout(value) : `${value} CU`;
}
