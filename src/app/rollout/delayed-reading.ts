import type { ChangedFiles, RulesReading } from '../../ports/rules.ts';

/** How long files that were changed in place must stay unchanged before their rules apply, in real milliseconds. */
export const DELAY_MS = 10_000;

/** The last reading, which waits because its files may be incomplete, or because the store is unavailable. */
export interface DelayedReading {
  reading: RulesReading & { ok: true };
  /** Descriptions of protections that these rules remove. */
  vanished: readonly string[];
}

/** When each file was last changed in place, by path, in monotonic time. */
export type ChangeTimes = Map<string, number>;

/** Notes files that were changed in place. Forgets files that were replaced as a whole, which are complete. */
export function noteChanges(changedAt: ChangeTimes, { inPlace, replaced }: ChangedFiles, nowMonotonicMs: number): void {
  for (const file of replaced) changedAt.delete(file);
  for (const file of inPlace) changedAt.set(file, nowMonotonicMs);
}

/** Notes when files were written, from their ages in milliseconds. Call this before the rules are first read. */
export function noteAges(changedAt: ChangeTimes, ages: ReadonlyMap<string, number>, nowMonotonicMs: number): void {
  for (const [file, agoMs] of ages) changedAt.set(file, nowMonotonicMs - agoMs);
}

/** Returns true while somebody may still be writing a file. Forgets files that have been unchanged for {@link DELAY_MS}. */
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
