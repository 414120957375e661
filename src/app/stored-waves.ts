/** Waves of `ready: true` as the leader has fixed them: every daemon and command reads the same from the store. */
import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import type { DocumentStore } from '../ports/store.ts';
import { type OpenDocument, sharedDocuments } from './shared-documents.ts';

const WAVES = sharedDocuments<readonly ReadyWaves[]>('ready-waves', 1);
const NAME = 'all';

/** Kept for this long after their instant: until then they tell when a change became due. */
const KEPT_MS = 3_600_000;

export function hasReadyWaves(policies: readonly Policy[]): boolean {
  return policies.some((policy) =>
    ruleOf(policy)
      .windows(policy)
      .some((window) => window.readyInWaves),
  );
}

/** The waves that are fixed; undefined if nothing is kept, or by another version. */
export function readReadyWaves(store: Pick<DocumentStore, 'document'>): Promise<readonly ReadyWaves[] | undefined> {
  return WAVES.read(store, NAME);
}

/** The same, for the leader to add to: that fails if another daemon has done so meanwhile. */
export function openReadyWaves(
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>,
): Promise<OpenDocument<readonly ReadyWaves[]>> {
  return WAVES.open(store, NAME);
}

/** The waves with others, which replace those of the same instants; without those that have long passed. */
export function withAdded(
  before: readonly ReadyWaves[],
  added: readonly ReadyWaves[],
  nowMs: number,
): readonly ReadyWaves[] {
  const replaced = new Set(added.map(({ opensAtMs }) => opensAtMs));
  return [...before.filter(({ opensAtMs }) => opensAtMs > nowMs - KEPT_MS && !replaced.has(opensAtMs)), ...added];
}
