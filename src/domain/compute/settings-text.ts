import { type ComputeSettings, NEVER_SUSPENDS, type Size } from './compute.ts';

/** A size as policies write it: `2` fixed, `1-4` a range. CU. */
export function formatSize({ minCu, maxCu }: Size): string {
  return minCu === maxCu ? `${minCu}` : `${minCu}-${maxCu}`;
}

const UNITS: readonly [string, number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
];

/** A canonical timeout in seconds as policies write it: `never`, `5m`, `1h`. */
export function formatSuspendTimeout(seconds: number): string {
  return seconds === NEVER_SUSPENDS ? 'never' : formatDuration(seconds);
}

/** `size 2-8 → 0.25-1 CU, suspend_after never → 5m`: what becomes of the fields that change; empty if none does. */
export function formatChange(before: ComputeSettings, fields: Partial<ComputeSettings>): string {
  const after = { ...before, ...fields };
  const [was, is] = [before, after].map(({ suspendTimeoutSeconds }) => formatSuspendTimeout(suspendTimeoutSeconds));
  return [
    ...(fields.maxCu === undefined ? [] : [`size ${formatSize(before)} → ${formatSize(after)} CU`]),
    ...(fields.suspendTimeoutSeconds === undefined ? [] : [`suspend_after ${was} → ${is}`]),
  ].join(', ');
}

/** Whole seconds as policies write a duration: in the largest unit in which it is a whole number. */
export function formatDuration(seconds: number): string {
  const unit = UNITS.find(([, size]) => seconds % size === 0);
  return unit ? `${seconds / unit[1]}${unit[0]}` : `${seconds}s`;
}
