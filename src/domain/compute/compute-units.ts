/**
 * Compute units (CU): the allowed sizes, and how many connections Postgres accepts at each.
 * Source of both tables: the control API's specification, "Limits".
 */
import { type ComputeSettings, NEVER_SUSPENDS, type Size } from './compute.ts';

/** Every size that the platform allows, in CU, ascending: 0.25, 0.5, 1..16, then the even numbers to 56. */
export const COMPUTE_SIZES_CU: readonly number[] = [
  0.25,
  0.5,
  ...Array.from({ length: 16 }, (_, index) => index + 1),
  ...Array.from({ length: 20 }, (_, index) => 18 + 2 * index),
];

/** The largest size, in CU, that an autoscaling range may reach; above it only a fixed size is allowed. */
export const MAX_AUTOSCALING_CU = 16;

/** The widest autoscaling range, maximum minus minimum, in CU. */
export const MAX_AUTOSCALING_SPAN_CU = 8;

/** `max_connections` by size in CU; from 9 CU on it is {@link MAX_CONNECTIONS_CEILING}. */
const MAX_CONNECTIONS_BY_CU: ReadonlyMap<number, number> = new Map([
  [0.25, 112],
  [0.5, 225],
  [1, 450],
  [2, 901],
  [3, 1351],
  [4, 1802],
  [5, 2253],
  [6, 2703],
  [7, 3154],
  [8, 3604],
]);

export const MAX_CONNECTIONS_CEILING = 4000;

/** True if the platform offers exactly this size in CU. */
export function isAllowedSize(cu: number): boolean {
  return COMPUTE_SIZES_CU.includes(cu);
}

/** The problems for which the platform refuses a range, each with a remedy; empty for a valid range. */
export function sizeProblems({ minCu, maxCu }: Size): string[] {
  const impossible = [...new Set([minCu, maxCu])].filter((cu) => !isAllowedSize(cu));
  if (impossible.length > 0) return impossible.map(impossibleSizeText);
  if (minCu > maxCu)
    return [`the minimum, ${minCu} CU, is above the maximum, ${maxCu} CU; write the smaller one first`];
  if (minCu === maxCu) return [];
  if (maxCu > MAX_AUTOSCALING_CU)
    return [
      `a range ends at ${MAX_AUTOSCALING_CU} CU at most; above that only a fixed size such as ${maxCu} is allowed`,
    ];
  const spanCu = maxCu - minCu;
  if (spanCu <= MAX_AUTOSCALING_SPAN_CU) return [];
  const limit = `a range spans ${MAX_AUTOSCALING_SPAN_CU} CU at most`;
  return [`${limit}, this one ${spanCu} CU; raise the minimum or lower the maximum`];
}

/** The message that a size does not exist, with the nearest sizes that do. */
export function impossibleSizeText(cu: number): string {
  return `${cu} CU is not a size${nearestSizesText(cu)}`;
}

/** Text such as `; the nearest are 3 and 4` for a size that is not allowed; empty for NaN. */
export function nearestSizesText(cu: number): string {
  const below = COMPUTE_SIZES_CU.findLast((size) => size < cu);
  const above = COMPUTE_SIZES_CU.find((size) => size > cu);
  const nearest = [below, above].filter((size) => size !== undefined);
  if (nearest.length === 0) return '';
  return `; the nearest ${nearest.length === 1 ? 'is' : 'are'} ${nearest.join(' and ')}`;
}

/**
 * `max_connections` of a compute whose autoscaling maximum is `maxCu`, an allowed size in CU. The specification derives it from the
 * maximum, not from the current size.
 */
export function maxConnectionsAt(maxCu: number): number {
  return MAX_CONNECTIONS_BY_CU.get(maxCu) ?? MAX_CONNECTIONS_CEILING;
}

/** False for a compute that never sleeps: its timeout is "never", or its size is too large for autoscaling. */
export function maySleep(compute: { maxCu: number; suspendTimeoutSeconds: number | undefined }): boolean {
  return compute.suspendTimeoutSeconds !== NEVER_SUSPENDS && compute.maxCu <= MAX_AUTOSCALING_CU;
}

/** A size in CU as policies write it: `2` for a fixed size, `1-4` for a range. */
export function formatSize({ minCu, maxCu }: Size): string {
  return minCu === maxCu ? `${minCu}` : `${minCu}-${maxCu}`;
}

const UNITS: readonly [string, number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
];

/** A canonical timeout as policies write it: `never`, `5m`, `1h`. */
export function formatSuspendTimeout(seconds: number): string {
  return seconds === NEVER_SUSPENDS ? 'never' : formatDuration(seconds);
}

/** The changed fields as text, such as `size 2-8 → 0.25-1 CU, suspend_after never → 5m`; empty if there are none. */
export function formatChange(before: ComputeSettings, fields: Partial<ComputeSettings>): string {
  const after = { ...before, ...fields };
  const changes: string[] = [];
  if (fields.maxCu !== undefined) changes.push(`size ${formatSize(before)} → ${formatSize(after)} CU`);
  if (fields.suspendTimeoutSeconds !== undefined) {
    const timeouts = [before, after].map((settings) => formatSuspendTimeout(settings.suspendTimeoutSeconds));
    changes.push(`suspend_after ${timeouts.join(' → ')}`);
  }
  return changes.join(', ');
}

/** Whole seconds as policies write a duration, in the largest unit that divides them; `0s` for none. */
export function formatDuration(seconds: number): string {
  const unit = UNITS.find(([, size]) => seconds !== 0 && seconds % size === 0);
  return unit ? `${seconds / unit[1]}${unit[0]}` : `${seconds}s`;
}

/** Measurements are rounded: usage up to this factor of the minimum counts as the minimum. */
const MINIMUM_TOLERANCE = 1.03;

/** True if `used` is about what the minimum size uses in the time `awake`: CU-hours in hours, or CU-seconds in seconds. */
export function isAtMinimum(used: number, minCu: number, awake: number): boolean {
  return used <= MINIMUM_TOLERANCE * minCu * awake;
}
