import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Store, Stored, StoredOverrides } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/**
 * Holds and freezes as last read. One ends when it expires or when somebody ends it, never because a store lost it: an override that
 * vanished from the store stays active and is stored again.
 */
export interface Overrides extends StoredOverrides {
  /** All of it at one moment: for a decision and its write, which must rest on the same. */
  snapshot(): KnownOverrides;
  /** When they were last read, milliseconds since the epoch; undefined before the first time. */
  readonly readAtMs: number | undefined;
  /** Reads both again. Throws if the store can't be asked: then nothing is decided, and so nothing written. */
  refresh(store: Store, nowMs: number): Promise<void>;
}

/** Holds and freezes, with the revision of the store under which they were read; empty before they were. */
export interface KnownOverrides extends StoredOverrides {
  readonly revision: string;
}

export interface OverridesOptions {
  telemetry: Telemetry;
  /** The overrides known when a daemon last ran here. */
  remembered?: StoredOverrides | undefined;
  /** Keeps what is known for the next start; called when it has changed. Never rejects. */
  keep?: ((known: StoredOverrides) => Promise<void>) | undefined;
}

export function createOverrides({ telemetry, remembered, keep }: OverridesOptions): Overrides {
  let known: KnownOverrides = { ...(remembered ?? { holds: [], freezes: [] }), revision: '' };
  let kept: string | undefined;
  let readAtMs: number | undefined;

  async function refresh(store: Store, nowMs: number): Promise<void> {
    const stored = await store.overrides(nowMs);
    readAtMs = nowMs;
    const lost = {
      holds: lostFrom(stored.holds, known.holds, nowMs),
      freezes: lostFrom(stored.freezes, known.freezes, nowMs),
    };
    known = {
      holds: [...stored.holds.entries, ...lost.holds],
      freezes: [...stored.freezes.entries, ...lost.freezes],
      revision: stored.revision,
    };
    await keepWhatChanged();
    for (const freeze of lost.freezes) await putBack('freeze', freeze, () => store.putFreeze(freeze));
    for (const hold of lost.holds) await putBack('hold', hold, () => store.putHold(hold));
  }

  async function keepWhatChanged(): Promise<void> {
    const { holds, freezes } = known;
    const text = JSON.stringify({ holds, freezes });
    if (text === kept) return;
    kept = text;
    await keep?.({ holds, freezes });
  }

  /** One for which there is no room stays active here. */
  async function putBack(kind: 'freeze' | 'hold', { id, owner }: Entry, put: () => ReturnType<Store['putHold']>) {
    if (!(await put()).ok) return;
    telemetry.metrics.increment('ebb_overrides_restored_total', { kind });
    const message = `the store had lost ${kind} ${id} of ${owner}, which nobody has ended: it is written back`;
    telemetry.log.warn({ event: 'ebb.override_restored', kind, id }, message);
  }

  return {
    get holds() {
      return known.holds;
    },
    get freezes() {
      return known.freezes;
    },
    get readAtMs() {
      return readAtMs;
    },
    snapshot: () => known,
    refresh,
  };
}

type Entry = Pick<Freeze, 'id' | 'owner' | 'expiresAtMs'>;

/** Overrides that were known, have not expired, and were ended by nobody. */
export function lostFrom<E extends Entry>({ entries, endedIds }: Stored<E>, known: readonly E[], nowMs: number): E[] {
  const there = new Set(entries.map(({ id }) => id));
  return known.filter(({ id, expiresAtMs }) => expiresAtMs > nowMs && !there.has(id) && !endedIds.has(id));
}
