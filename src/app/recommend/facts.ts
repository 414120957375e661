import type { NamedClient, SessionFacts } from '../../domain/awake/clients.ts';
import { type AwakeHistory, awakeHistory, historyFrom } from '../../domain/awake/intervals.ts';
import type { OperationLog } from '../../domain/awake/operation-log.ts';
import type { PeriodUse } from '../../domain/awake/usage-while-awake.ts';
import { type Compute, type ComputeSettings, groupOf } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import { floorsInEffect } from '../../domain/decide/stages/floors.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import { countBy } from '../../domain/grouping.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import { type GlobRule, type OwnerRule, ownersOf, valueByGlob } from '../../domain/policy/owners.ts';
import { unloadedTeamOf } from '../../domain/policy/team-parts.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import { type ComputeRecord, lastChangeMs } from '../../domain/records/compute-record.ts';
import { DAY_MS, WEEK_MS } from '../../domain/time/units.ts';
import type { UsageBucket, UsageSeries } from '../../domain/usage/usage.ts';
import type { ProjectPeriod } from '../../ports/control-api.ts';

export interface RecommendContext {
  owners: readonly OwnerRule[];
  coldStartWorthMs: readonly GlobRule<number>[];
  /** Undefined if there are none, or they can't be read. */
  policies: CompiledPolicies | undefined;
  holds: readonly Hold[];
  profileOf(account: string): ConnectionProfile;
  /** The stored record of a compute; undefined where it is not known. */
  recordOf?: (computeId: string) => Partial<ComputeRecord> | undefined;
}

/** Combines the past of each compute with settings, current policies and active holds. */
export function* recommendFacts(pasts: readonly PastCompute[], context: RecommendContext): Generator<RecommendFacts> {
  const { owners, policies, holds } = context;
  const ownerOf = ownersOf({ rules: owners, policies, computes: pasts.map(({ compute }) => compute) });
  const worthOf = valueByGlob(context.coldStartWorthMs);
  for (const { readHistory, ...past } of pasts) {
    const history = readHistory();
    const record = context.recordOf?.(past.compute.computeId);
    const timeoutSinceMs = record && lastChangeMs(record, 'suspend_timeout');
    const held = setByHolds(past.compute, holds);
    const coldStartWorthMs = worthOf(past.compute);
    const unreadDecider = policies && unreadDeciderOf(policies, past.compute);
    yield {
      ...past,
      ...(coldStartWorthMs !== undefined && { coldStartWorthMs }),
      ...(timeoutSinceMs !== undefined && { timeoutSinceMs }),
      ...(policies && harmOf(past.compute, record, policies, history.toMs)),
      history,
      profile: context.profileOf(past.compute.account),
      owner: ownerOf(past.compute),
      ...(unreadDecider !== undefined && { unreadDecider }),
      decided: { ...(policies && setByPolicies(past.compute, policies)), ...held },
      ...(policies &&
        Object.keys(held).length === 0 && {
          wanted: (baseline) => wantedBy({ policies, compute: past.compute, fromMs: history.toMs }, baseline),
        }),
    };
  }
}

/** The settings that policies give a compute in the week after an instant, if `baseline` is what a person has set. */
function wantedBy(
  { policies, compute, fromMs }: { policies: CompiledPolicies; compute: Compute; fromMs: number },
  baseline: ComputeSettings,
): readonly ComputeSettings[] {
  const subjects = [{ compute: { ...compute, ...baseline }, baseline }];
  const forecasts = forecastFleet({ policies, subjects, fromMs, toMs: fromMs + WEEK_MS });
  return forecasts.flatMap(({ segments }) => segments);
}

/** How long a harm counts that was only reported, without setting the lowering back, in milliseconds. */
const HARM_COUNTS_MS = 28 * DAY_MS;

/** Returns the harm that a guard found, unless it is old or released, or its policy has changed. */
function harmOf(
  compute: Compute,
  record: Partial<ComputeRecord> | undefined,
  policies: CompiledPolicies,
  nowMs: number,
): Pick<RecommendFacts, 'harm'> {
  const { guardFinding: finding, setBy, baseline, trials } = record ?? {};
  if (!finding) return {};
  // The known past, which ends at `nowMs`, may end before the finding.
  const floors = floorsInEffect(policies, compute, record?.floors, Math.max(nowMs, finding.foundAtMs));
  const isKept = Object.keys(floors).length > 0;
  if (finding.remedy === 'notify' ? nowMs - finding.foundAtMs > HARM_COUNTS_MS : !isKept) return {};
  const group = groupOf(finding.from);
  const name = floors[group]?.policy ?? setBy?.[group];
  const policy = policies.set.policies.find((one) => one.name === name);
  if (!policy) return {};
  const zone =
    ruleOf(policy)
      .times(policy)
      .flatMap((time) => ('zone' in time ? [time.zone] : []))[0] ?? 'UTC';
  const subjects = [{ compute, baseline, trials }];
  return {
    harm: {
      finding,
      floors,
      policy: { name: policy.name, priority: policy.priority, zone },
      rulesBetween: (fromMs, toMs) => forecastFleet({ policies, subjects, fromMs, toMs })[0]?.segments ?? [],
    },
  };
}

type Decided = NonNullable<RecommendFacts['decided']>;

function unreadDeciderOf(policies: CompiledPolicies, compute: Compute): string | undefined {
  const team = unloadedTeamOf(policies, compute);
  return team === undefined ? undefined : `a policy of ${team} that is staged or can't be read`;
}

/** Returns the enforced policies that set the fields of a compute. If the policies of its team are not loaded, returns a text that says so. */
function setByPolicies(compute: Compute, policies: CompiledPolicies): Decided {
  const { set, selecting } = policies;
  const unread = unreadDeciderOf(policies, compute);
  if (unread !== undefined) return { size: unread, suspend_timeout: unread };
  const decided: Decided = {};
  for (const index of selecting(compute)) {
    const policy = set.policies[index];
    if (policy?.mode !== 'enforce') continue;
    for (const group of ruleOf(policy).mayChange(policy)) decided[group] ??= `policy ${policy.name}`;
  }
  return decided;
}

/** The holds that set the fields of a compute. */
function setByHolds(compute: Compute, holds: readonly Hold[]): Decided {
  const decided: Decided = {};
  for (const { computeId, size, suspendTimeoutSeconds, freeze, owner } of holds) {
    if (computeId !== compute.computeId) continue;
    const text = `the hold of ${owner}`;
    if (size || freeze) decided.size ??= text;
    if (suspendTimeoutSeconds !== undefined || freeze) decided.suspend_timeout ??= text;
  }
  return decided;
}

/* The past of computes, from operations and usage, as the basis of findings. */

export interface PastCompute {
  compute: Compute;
  /** Computed on each call, since the histories of a large fleet would fill the memory. */
  readHistory(): AwakeHistory;
  /** The hourly usage of the branch; absent if none is known, or the branch has several computes. */
  hours?: readonly UsageBucket[];
  period?: PeriodUse;
  plan?: AccountPlan;
  /** US dollars for a CU-hour; absent where the account's plan is unknown. */
  price?: number;
  /** The clients in samples of its Postgres, if there are any. */
  clients?: readonly NamedClient[];
  sessions?: SessionFacts;
}

/** Combines the facts about each compute in a time span. */
export function pastOfComputes(options: {
  computes: readonly Compute[];
  log: Pick<OperationLog, 'projects'>;
  usage: readonly UsageSeries[];
  fromMs: number;
  toMs: number;
  pricing: (compute: Compute) => Pick<PastCompute, 'plan' | 'price'>;
  /** By project, when its stored operations were read, milliseconds since the epoch. Its span ends then, as long as usual. */
  storedAtMs?: ReadonlyMap<string, number>;
  /** The usage of projects in their billing periods, for computes without hourly usage. */
  periods?: ReadonlyMap<string, ProjectPeriod>;
}): PastCompute[] {
  const { log, usage, pricing, storedAtMs, periods } = options;
  const projects = new Map(log.projects.map((project) => [project.projectId, project]));
  const hours = new Map(usage.map((series) => [`${series.projectId} ${series.branchId}`, series.buckets]));
  const computesOnBranch = countBy(options.computes, branchKey);
  const computesOfProject = countBy(options.computes, ({ projectId }) => projectId);
  return options.computes.map((compute) => {
    const project = projects.get(compute.projectId);
    const toMs = storedAtMs?.get(compute.projectId) ?? options.toMs;
    const fromMs = toMs - (options.toMs - options.fromMs);
    const coveredFromMs = Math.max(project?.fromMs ?? toMs, fromMs);
    const readHistory = () => {
      const events = project?.eventsOf(compute.computeId) ?? [];
      return historyFrom(
        awakeHistory(events, { fromMs: project?.fromMs ?? toMs, toMs, present: compute }),
        coveredFromMs,
      );
    };
    const ofBranch = computesOnBranch.get(branchKey(compute)) === 1 ? hours.get(branchKey(compute)) : undefined;
    const { cuHours = 0, awakeHours = 0 } = periods?.get(compute.projectId) ?? {};
    // The usage of a project includes that of its deleted computes, which its operations show.
    const isAlone =
      computesOfProject.get(compute.projectId) === 1 &&
      (project?.computeIds ?? []).every((computeId) => computeId === compute.computeId);
    return {
      compute,
      readHistory,
      ...pricing(compute),
      ...(ofBranch && { hours: ofBranch }),
      ...(isAlone && awakeHours > 0 && { period: { cuHours, awakeHours } }),
    };
  });
}

function branchKey({ projectId, branchId }: Compute): string {
  return `${projectId} ${branchId}`;
}
