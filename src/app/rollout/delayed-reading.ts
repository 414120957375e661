import type { ChangedFiles, RulesReading } from '../../ports/rules.ts';

/** How long files that were changed in place must stay unchanged before their rules apply, in real milliseconds. */
export const DELAY_MS = 10_000;

/** The last reading, which waits while its files may still be being written, or the store is unavailable. */
export interface DelayedReading {
  reading: RulesReading & { ok: true };
  /** Descriptions of protections that these rules remove. */
  vanished: readonly string[];
}

/** When each file was last changed in place, in monotonic time. */
export type ChangeTimes = Map<string, number>;

/** Notes changed files: a file that was replaced as a whole is complete. */
export function noteChanges(changedAt: ChangeTimes, { inPlace, replaced }: ChangedFiles, nowMonotonicMs: number): void {
  for (const file of replaced) changedAt.delete(file);
  for (const file of inPlace) changedAt.set(file, nowMonotonicMs);
}

/** Notes when files were written, from their ages in milliseconds. Called before the first reading of the rules. */
export function noteAges(changedAt: ChangeTimes, ages: ReadonlyMap<string, number>, nowMonotonicMs: number): void {
  for (const [file, agoMs] of ages) changedAt.set(file, nowMonotonicMs - agoMs);
}

/** Returns true while a file may still be being written. Forgets files that have been unchanged for long enough. */
export function isBeingWritten(changedAt: ChangeTimes, nowMonotonicMs: number): boolean {
  for (const [file, atMs] of changedAt) if (nowMonotonicMs - atMs >= DELAY_MS) changedAt.delete(file);
  return changedAt.size > 0;
}

/** Describes in one line when the rules will apply and which protections they remove. */
export function describeDelay([first, ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const what = first === undefined ? '' : `; ${first}${more}`;
  return `files were changed in place: the new policies apply once the files are unchanged for ${DELAY_MS / 1000} s, or at once on SIGHUP${what}`;
}
