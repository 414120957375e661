/** The waves of windows with `ready: true`: the leader fixes them in the store, so that every daemon and command uses the same. */

import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import { HOUR_MS } from '../domain/time/units.ts';
import { sharedDocument } from './shared-documents.ts';

export const {
  read: readReadyWaves,
  open: openReadyWaves,
  update: updateReadyWaves,
} = sharedDocument<readonly ReadyWaves[]>('ready-waves', 'all', 1);

/** How long waves are kept after their windows open, in milliseconds: they show when a change became due. */
const KEEP_AFTER_OPENING_MS = HOUR_MS;

export function hasReadyWaves(policies: readonly Policy[]): boolean {
  const windows = policies.flatMap((policy) => ruleOf(policy).windows(policy));
  return windows.some(({ readyInWaves }) => readyInWaves);
}

/** Adds waves, which replace those of the same openings, and drops waves whose openings have long passed. */
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
