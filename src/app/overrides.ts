import type { Compute } from '../domain/compute/compute.ts';
import { type Freeze, mayConcern } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import { HOUR_MS, isoInstant } from '../domain/time/units.ts';
import type { Store, Stored, StoredOverrides } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { StoreClock } from './group/clock-skew.ts';

/** For this long it is known which freezes have ended, in milliseconds. */
const KEPT_MS = 6 * HOUR_MS;

/** Holds and freezes, and those that have ended. */
export interface KnownOverrides extends StoredOverrides {
  /** Returns when the last freeze of a compute, or hold that kept it as it was, ended (milliseconds since the epoch), and a text about it. */
  lastThawOf(compute: Compute): { atMs: number; message: string } | undefined;
}

/**
 * Holds and freezes as last read. An override ends when it expires or a person ends it, but not if the store loses it: such an override stays
 * active, and is stored again.
 */
export interface Overrides extends KnownOverrides {
  /** Returns holds and freezes of one moment, so that a decision and its write use the same. */
  snapshot(): OverridesSnapshot;
  /** When the store was last read, milliseconds since the epoch; undefined before the first time. */
  readonly readAtMs: number | undefined;
  /** Reads holds and freezes again. Throws if the store can't be read: then nothing is decided or written. */
  refresh(store: Store, nowMs: number): Promise<void>;
}

/** Holds and freezes with their revision in the store; the revision is empty before the first reading. */
export interface OverridesSnapshot extends KnownOverrides {
  readonly revision: string;
}

export function createOverrides({
  telemetry,
  remembered,
  save,
}: {
  telemetry: Telemetry;
  /** The overrides that were saved when a daemon last ran on this machine. */
  remembered?: StoredOverrides | undefined;
  /** Saves the overrides for the next start; called when they have changed. Never rejects. */
  save?: ((overrides: StoredOverrides) => Promise<void>) | undefined;
}): Overrides {
  let latest: OverridesSnapshot = { ...(remembered ?? { holds: [], freezes: [] }), revision: '', lastThawOf };
  let savedText: string | undefined;
  let readAtMs: number | undefined;
  let thawed: readonly Thawed[] = [];

  function lastThawOf(compute: Compute): ReturnType<KnownOverrides['lastThawOf']> {
    const ofCompute = thawed.filter((one) => concerns(one, compute));
    const last = ofCompute.toSorted((a, b) => a.endedAtMs - b.endedAtMs).at(-1);
    if (!last) return undefined;
    const { owner, reason, endedAtMs: atMs } = last;
    const what = 'select' in last ? 'frozen' : 'held as it was';
    return { atMs, message: `${what} by ${owner} until ${isoInstant(atMs)}: ${reason}` };
  }

  async function refresh(store: Store, nowMs: number): Promise<void> {
    const stored = await store.overrides(nowMs);
    const before = readAtMs === undefined ? { holds: [], freezes: [] } : latest;
    readAtMs = nowMs;
    const lost = {
      holds: lostOverrides(stored.holds, latest.holds, nowMs),
      freezes: lostOverrides(stored.freezes, latest.freezes, nowMs),
    };
    latest = {
      holds: [...stored.holds.entries, ...lost.holds],
      freezes: [...stored.freezes.entries, ...lost.freezes],
      revision: stored.revision,
      lastThawOf,
    };
    const ended = endedSince(before, latest).map((one) => ({ ...one, endedAtMs: Math.min(nowMs, one.expiresAtMs) }));
    thawed = [...thawed.filter(({ endedAtMs }) => nowMs - endedAtMs < KEPT_MS), ...ended];
    await saveChanges();
    for (const freeze of lost.freezes) await writeBack('freeze', freeze, () => store.putFreeze(freeze));
    for (const hold of lost.holds) await writeBack('hold', hold, () => store.putHold(hold));
  }

  async function saveChanges(): Promise<void> {
    const { holds, freezes } = latest;
    const text = JSON.stringify({ holds, freezes });
    if (text === savedText) return;
    savedText = text;
    await save?.({ holds, freezes });
  }

  /** Stores a lost override again. If the store has no room, the override stays active in this daemon. */
  async function writeBack(kind: 'freeze' | 'hold', { id, owner }: Entry, put: () => ReturnType<Store['putHold']>) {
    if (!(await put()).ok) return;
    telemetry.metrics.increment('ebb_overrides_restored_total', { kind });
    const message = `the store had lost ${kind} ${id} of ${owner}, which nobody has ended: it is written back`;
    telemetry.log.warn({ event: 'ebb.override_restored', kind, id }, message);
  }

  return {
    get holds() {
      return latest.holds;
    },
    get freezes() {
      return latest.freezes;
    },
    get readAtMs() {
      return readAtMs;
    },
    snapshot: () => latest,
    lastThawOf,
    refresh,
  };
}

/** Wraps overrides so that they expire by the store's time: by a local clock that is far ahead, all would seem to have expired. */
export function readByStoreTime(overrides: Overrides, storeClock: Pick<StoreClock, 'excessiveOffsetMs'>): Overrides {
  return {
    get holds() {
      return overrides.holds;
    },
    get freezes() {
      return overrides.freezes;
    },
    get readAtMs() {
      return overrides.readAtMs;
    },
    snapshot: overrides.snapshot,
    lastThawOf: overrides.lastThawOf,
    async refresh(store, nowMs) {
      await overrides.refresh(store, nowMs - ((await storeClock.excessiveOffsetMs()) ?? 0));
    },
  };
}

type Entry = Pick<Freeze, 'id' | 'owner' | 'expiresAtMs'>;

type Thawed = (Freeze | Hold) & { endedAtMs: number };

/** Returns the freezes, and the holds that kept a compute as it was, that are no longer among the others. */
function endedSince(before: StoredOverrides, { freezes, holds }: StoredOverrides): (Freeze | Hold)[] {
  const present = new Set([...freezes, ...holds].map(({ id }) => id));
  const keeping = [...before.freezes, ...before.holds.filter(({ freeze }) => freeze)];
  return keeping.filter(({ id }) => !present.has(id));
}

function concerns(one: Freeze | Hold, compute: Compute): boolean {
  return 'select' in one ? mayConcern(one.select)(compute) : one.computeId === compute.computeId;
}

/** Returns the known overrides that the store has lost: they are missing there, but have not expired, and nobody has ended them. */
export function lostOverrides<E extends Entry>(
  { entries, endedIds }: Stored<E>,
  known: readonly E[],
  nowMs: number,
): E[] {
  const storedIds = new Set(entries.map(({ id }) => id));
  return known.filter(({ id, expiresAtMs }) => expiresAtMs > nowMs && !storedIds.has(id) && !endedIds.has(id));
}
