import type { ChangedFiles, RulesReading } from '../../ports/rules.ts';

/** Rules count once the files that were changed in place have been unchanged for this long, in real milliseconds. */
export const DELAY_MS = 10_000;

/** The last reading while its files may still be being written, and since when each of them is unchanged. */
export interface DelayedReading {
  reading: RulesReading & { ok: true };
  /** Policies that the current rules have and these lack, for people. */
  vanished: readonly string[];
}

/** Remembers which files were changed in place, by the clock that only goes forward. */
export type ChangedAt = Map<string, number>;

/** Notes changed files: a file that was replaced as a whole is complete. */
export function noteChanges(changedAt: ChangedAt, { inPlace, replaced }: ChangedFiles, nowMonotonicMs: number): void {
  for (const file of replaced) changedAt.delete(file);
  for (const file of inPlace) changedAt.set(file, nowMonotonicMs);
}

/** True while a file may still be being written. Forgets the others. */
export function isBeingWritten(changedAt: ChangedAt, nowMonotonicMs: number): boolean {
  for (const [file, atMs] of changedAt) if (nowMonotonicMs - atMs >= DELAY_MS) changedAt.delete(file);
  return changedAt.size > 0;
}

/** One line: when the rules count, and which policies vanish with them. */
export function describeDelay([first, ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const what = first === undefined ? '' : `; ${first}${more}`;
  return `changed in place: the new policies count once the files have not changed for ${DELAY_MS / 1000} s, or at once on SIGHUP${what}`;
}
