/**
 * What a compute should have, worked out a second time and in the plainest way: schedules, limits, hard limits and holds, from the data of
 * which the policies were written and from what people were told. It shares no code with `src/domain`. It does not know gates (when a change
 * may be made), headroom, budgets, trials or `ready`.
 */

import type { SimFiles, SimLimits, SimPolicy, SimSchedule, SimSize, SimValues, SimWindow } from './policies.ts';

export const FIELDS = ['size', 'suspendSeconds'] as const;
export type Field = (typeof FIELDS)[number];

/** A hold that somebody was told is set. */
export interface SimHold {
  id: string;
  computeId: string;
  createdAtMs: number;
  expiresAtMs: number;
  /** Neither: it keeps the compute as it is. */
  values: SimValues;
  isFreeze: boolean;
}

export interface SimSubject {
  computeId: string;
  projectName: string;
  baseline: Required<SimValues>;
}

/** The value of each field; null: no policy and nobody wants one. */
export interface Wanted {
  size: SimSize | null;
  suspendSeconds: number | null;
  /** Fields that may not be written: those that the newest hold keeps as they are, or all, by a policy. */
  frozen: readonly Field[];
}

export function selects({ projects }: Pick<SimPolicy, 'projects'>, projectName: string): boolean {
  return projects.some(
    (glob) => glob === '*' || (glob.endsWith('*') && projectName.startsWith(glob.slice(0, -1))) || glob === projectName,
  );
}

/** In the order of the language: by file, and then as they stand there. A team's policies reach no further than its scope. */
export function policiesFor(files: SimFiles, projectName: string): SimPolicy[] {
  const ofTeam = projectName.startsWith('web-') ? files.web : [];
  return [...files.platform, ...ofTeam].filter((policy) => selects(policy, projectName));
}

export function wanted(files: SimFiles, subject: SimSubject, holds: readonly SimHold[], atMs: number): Wanted {
  const policies = policiesFor(files, subject.projectName);
  const active = holds
    .filter((hold) => hold.computeId === subject.computeId && atMs < hold.expiresAtMs)
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs);
  const isFrozen = policies.some((policy) => policy.kind === 'freeze' && policy.fromMs <= atMs && atMs < policy.toMs);
  /** The newest hold that names the field: a freeze names both. */
  const holdOf = (field: Field) => active.find(({ values, isFreeze }) => isFreeze || values[field] !== undefined);
  const frozen = FIELDS.filter((field) => isFrozen || holdOf(field)?.isFreeze);
  const suspendSeconds =
    holdOf('suspendSeconds')?.values.suspendSeconds ?? scheduled(policies, 'suspendSeconds', subject, atMs);
  const limits = policies.filter((policy) => policy.kind === 'limits');
  const held = holdOf('size')?.values.size;
  const limited = clamp(
    scheduled(policies, 'size', subject, atMs) ?? (limits.length > 0 ? subject.baseline.size : null),
    limits,
  );
  const size = withinHardLimits(policies, held ?? limited);
  return { size, suspendSeconds, frozen };
}

/** Hard limits come last: they limit holds, and what guards took back. */
export function withinHardLimits(policies: readonly SimPolicy[], size: SimSize | null): SimSize | null {
  return clamp(size, policies.filter((policy) => policy.kind === 'limits' && policy.hard) as SimLimits[]);
}

function clamp(size: SimSize | null, limits: readonly { maxCu: number }[]): SimSize | null {
  if (size === null || limits.length === 0) return size;
  const most = Math.min(...limits.map(({ maxCu }) => maxCu));
  return [Math.min(size[0], most), Math.min(size[1], most)];
}

function scheduled<F extends Field>(
  policies: readonly SimPolicy[],
  field: F,
  { baseline }: SimSubject,
  atMs: number,
): NonNullable<SimValues[F]> | null {
  const schedules = policies.filter((policy): policy is SimSchedule => policy.kind === 'schedule');
  const open = schedules.flatMap((policy, at) =>
    policy.windows
      .filter((window) => window.fromMs <= atMs && atMs < window.toMs && window[field] !== undefined)
      .map((window, windowAt) => ({ policy, at, window, windowAt: policy.windows.indexOf(window) ?? windowAt })),
  );
  const [first] = open.toSorted(
    (a, b) => b.policy.priority - a.policy.priority || b.at - a.at || b.windowAt - a.windowAt,
  );
  if (first) return first.window[field] as NonNullable<SimValues[F]>;
  const rest = schedules
    .map((policy, at) => ({ policy, at, value: otherwiseOf(policy, baseline)[field] }))
    .filter(({ value }) => value !== undefined)
    .toSorted((a, b) => b.policy.priority - a.policy.priority || b.at - a.at);
  return (rest[0]?.value as NonNullable<SimValues[F]> | undefined) ?? null;
}

function otherwiseOf({ otherwise }: SimSchedule, baseline: Required<SimValues>): SimValues {
  if (otherwise === 'leave') return {};
  return otherwise === 'baseline' ? baseline : otherwise;
}

/** Instants at which something may begin to count, or end, for a project. */
export function edgesOf(files: SimFiles, projectName: string): number[] {
  const spans: readonly Pick<SimWindow, 'fromMs' | 'toMs'>[] = policiesFor(files, projectName).flatMap((policy) => {
    if (policy.kind === 'schedule') return policy.windows;
    return policy.kind === 'freeze' ? [policy] : [];
  });
  return spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]);
}
