/** The waves of `ready: true`, which the leader fixes in the store, so that every daemon and command uses the same. */

import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import { HOUR_MS } from '../domain/time/units.ts';
import type { DocumentStore } from '../ports/store.ts';
import { type OpenDocument, sharedDocuments } from './shared-documents.ts';

const WAVES = sharedDocuments<readonly ReadyWaves[]>('ready-waves', 1);
const NAME = 'all';

/** How long waves are kept after their windows open, in milliseconds: they show when a change became due. */
const KEEP_AFTER_OPENING_MS = HOUR_MS;

export function hasReadyWaves(policies: readonly Policy[]): boolean {
  const windows = policies.flatMap((policy) => ruleOf(policy).windows(policy));
  return windows.some(({ readyInWaves }) => readyInWaves);
}

/** Reads the fixed waves; undefined if none are stored, or another version of ebb has stored them. */
export function readReadyWaves(store: Pick<DocumentStore, 'document'>): Promise<readonly ReadyWaves[] | undefined> {
  return WAVES.read(store, NAME);
}

/** Opens the fixed waves, for the leader to add to. The addition fails if another daemon has changed them meanwhile. */
export function openReadyWaves(
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>,
): Promise<OpenDocument<readonly ReadyWaves[]>> {
  return WAVES.open(store, NAME);
}

/** Adds waves, which replace those of the same instants, and drops waves that have long passed. */
export function withNewWaves(
  before: readonly ReadyWaves[],
  added: readonly ReadyWaves[],
  nowMs: number,
): readonly ReadyWaves[] {
  const replaced = new Set(added.map(({ opensAtMs }) => opensAtMs));
  return [
    ...before.filter(({ opensAtMs }) => opensAtMs > nowMs - KEEP_AFTER_OPENING_MS && !replaced.has(opensAtMs)),
    ...added,
  ];
}
