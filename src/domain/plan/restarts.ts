import type { Compute } from '../compute/compute.ts';
import type { RestartWindow } from '../policy/directive.ts';

/**
 * True if a restart is due in an open window: the compute is awake, and was last started at least `every` ago or, without
 * `every`, before the window opened. A compute that sleeps starts anew by itself; one whose start is not known is left alone,
 * since it could be restarted again and again.
 */
export function restartDue({ everyMs, openSinceMs }: RestartWindow, compute: Compute, instantMs: number): boolean {
  const { startedAtMs } = compute;
  if (compute.state === 'idle' || compute.disabled || startedAtMs === undefined) return false;
  if (everyMs !== undefined) return instantMs - startedAtMs >= everyMs;
  return startedAtMs < openSinceMs;
}
