import type { Figure, Range } from '../awake/causes.ts';
import type { AwakeHistory } from '../awake/intervals.ts';
import type { Compute } from '../compute/compute.ts';
import { formatSuspendTimeout } from '../compute/compute-units.ts';
import type { AccountPlan } from '../compute/cost.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import type { UsageBucket } from '../usage/usage.ts';

export const FINDING_KINDS = [
  ...(['timeout', 'window', 'never_suspends', 'minimum', 'maximum'] as const),
  ...(['unused', 'preview', 'awake'] as const),
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** The facts about one compute that recommendations are computed from. */
export interface RecommendFacts {
  compute: Compute;
  history: AwakeHistory;
  /** CU-seconds of its branch by hours, oldest first, where the branch has no other compute. */
  hours?: readonly UsageBucket[];
  plan?: AccountPlan;
  /** US dollars for a CU-hour. */
  price?: number;
  /** The connections that it accepts at a size. */
  profile: ConnectionProfile;
  /** The present decision on each group of fields, such as `policy nights` or a hold: findings don't contradict it. */
  decided?: { size?: string; suspend_timeout?: string };
  owner: string;
  /** The worth of one start of this compute, in milliseconds awake; absent: the default. */
  coldStartWorthMs?: number;
}

/** Fields of a compute, in the words of the control API. */
export interface Fields {
  suspend_timeout_seconds?: number;
  min_cu?: number;
  max_cu?: number;
}

/** A policy as a person would write it: without a name, an owner and a selector. */
export interface PolicyDraft {
  /** The prefix of the policy's name. */
  name: string;
  /** In the words of the policy language. */
  body: { kind: 'limits' | 'schedule' } & Record<string, unknown>;
  /** The zone of the file; absent: any. */
  zone?: string;
  /** The country whose public holidays the body names as the calendar `holidays`. */
  holidays?: string;
}

export interface Finding {
  finding: FindingKind;
  compute: Compute;
  owner: string;
  now: Fields;
  proposed: Fields;
  figure: Figure;
  /** In CU-hours of a month of 730 h. */
  savesCuHours: Range;
  /** Savings beyond CU-hours, dollars a month: the price of a branch. */
  savesOtherUsd?: Range;
  /** US dollars a month; absent where no price is known. */
  savesUsd?: Range;
  startsMonth?: { before: number; after: Range };
  awakeShare?: { before: number; after: Range };
  evidence: string[];
  /** The risk, in a sentence. */
  risk: string;
  policy?: PolicyDraft;
}

/** A finding before it has a price. */
export type Unpriced = Omit<Finding, 'savesUsd' | 'owner' | 'compute'>;

const LABELS: Readonly<Record<keyof Fields, string>> = {
  suspend_timeout_seconds: 'suspend_after',
  min_cu: 'minimum',
  max_cu: 'maximum',
};

/** The proposal in words: `suspend_after 5m → 1m`; one text for each field. */
export function changesIn({ now, proposed }: Pick<Finding, 'now' | 'proposed'>): string[] {
  return (Object.keys(proposed) as (keyof Fields)[]).map((field) => {
    return `${LABELS[field]} ${fieldText(field, now[field])} → ${fieldText(field, proposed[field])}`;
  });
}

function fieldText(field: keyof Fields, value: number | undefined): string {
  if (value === undefined) return '?';
  return field === 'suspend_timeout_seconds' ? formatSuspendTimeout(value) : `${value} CU`;
}
