/**
 * The leader stores the last verdicts of guards, so that commands and other daemons can show them. All verdicts are in one document, which
 * each round replaces, so nothing is left of guards that are gone.
 */

import type { GuardState, GuardStates } from '../../domain/guards/state.ts';
import type { Verdict } from '../../domain/guards/verdict.ts';
import type { WatchMemory } from '../../domain/guards/watch.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { sharedDocument, sharedDocuments } from '../shared-documents.ts';

/** A guard's answers of one round. */
export interface StoredAnswer {
  key: string;
  atMs: number;
  /** By compute id. JSON has no infinite numbers: only the message of a verdict has those. */
  verdicts: Readonly<Record<string, Verdict>>;
}

export interface StoredWatch {
  /** The guard's query and conditions. If they change, the watches begin anew. */
  terms: string;
  memory: WatchMemory;
}

export const WATCHES = sharedDocuments<StoredWatch>('guard-watches', 1);
/** The last answers, by the name of the guard. */
export const ANSWERS = sharedDocument<Readonly<Record<string, StoredAnswer>>>('guard-answers', 'all', 1);

/** Reads the last verdicts, and the watches that are not over. */
export async function readGuardStates(store: Pick<DocumentStore, 'document'>): Promise<GuardStates> {
  const answers = Object.entries((await ANSWERS.read(store)) ?? {});
  const watches = await Promise.all(answers.map(([guard]) => WATCHES.read(store, guard)));
  const states = new Map<string, GuardState[]>();
  const add = (computeId: string, state: GuardState) => {
    states.set(computeId, [...(states.get(computeId) ?? []), state]);
  };
  for (const [index, [guard, { key, atMs, verdicts }]] of answers.entries()) {
    const { computes = {} } = watches[index]?.memory ?? {};
    for (const computeId of new Set([...Object.keys(verdicts), ...Object.keys(computes)])) {
      const verdict = verdicts[computeId];
      const watch = watchOf(computes[computeId]);
      if (!verdict && !watch) continue;
      add(computeId, {
        guard,
        ...(verdict && { key, atMs, verdict: withoutNulls(verdict) }),
        ...(watch && { watch }),
      });
    }
  }
  return states;
}

function watchOf(watched: WatchMemory['computes'][string] | undefined): GuardState['watch'] {
  const { watch, bad } = watched ?? {};
  if (!watch || watch.isOver) return undefined;
  const { loweredAtMs, sampledMs, blindMs } = watch;
  return {
    loweredAtMs,
    sampledMs,
    blindMs,
    ...(bad && { badSinceMs: bad.sinceMs }),
    ...(bad?.isCommon && { isCommon: true }),
  };
}

/** Leaves out nulls, as which infinite numbers were stored. */
function withoutNulls({ state, value, limit, message }: Verdict): Verdict {
  return {
    state,
    message,
    ...(typeof value === 'number' && { value }),
    ...(typeof limit === 'number' && { limit }),
  };
}
