import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { parsedOrAll } from '../../domain/policy/selector.ts';
import { selectorKeys } from '../../ports/documents.ts';
import type { Approval } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';

const Common = {
  id: z.string(),
  owner: z.string(),
  reason: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
};

export const StoredHold = z.looseObject({
  ...Common,
  projectId: z.string(),
  computeId: z.string(),
  size: z.looseObject({ minCu: z.number(), maxCu: z.number() }).exactOptional(),
  suspendTimeoutSeconds: z.number().exactOptional(),
  freeze: z.literal(true).exactOptional(),
  teams: z.array(z.string()).exactOptional(),
}) satisfies z.ZodType<Hold>;

const StoredSelector = z.looseObject(selectorKeys);
export const StoredFreeze = z.looseObject({
  ...Common,
  select: z.union([z.literal('all'), StoredSelector]).transform(parsedOrAll),
  allowRaise: z.boolean(),
  team: z.string().exactOptional(),
}) satisfies z.ZodType<Freeze>;

const StoredApproval = z.looseObject({
  hash: z.string(),
  who: z.string(),
  atMs: z.number(),
}) satisfies z.ZodType<Approval>;

/** Parses a stored text; undefined if the entry counts as absent. */
export type EntryReader<Entry> = (id: string, text: string) => Entry | undefined;

export interface OverrideReaders {
  hold: EntryReader<Hold>;
  freeze: EntryReader<Freeze>;
  approval: EntryReader<Approval>;
}

const StoredForAll = z.looseObject({ select: z.literal('all') });
const BEYOND_LIMITS =
  'the selector of a stored freeze is beyond the limits: everything is frozen; unfreeze it and set it again with fewer globs';

/** Keeps unknown fields. A hold or freeze that can't be parsed is logged, once for each id. */
export function createOverrideReaders({ log }: { log: Log }): OverrideReaders {
  const logged = new Set<string>();

  function logOnce(id: string, message: string): void {
    if (logged.has(id)) return;
    logged.add(id);
    log.warn({ id }, message);
  }

  return {
    hold: (id, text) => {
      const parsed = StoredHold.safeParse(parseJson(text));
      if (parsed.success) return parsed.data;
      logOnce(id, 'a stored hold is of another version or broken: it is ignored; set it again');
      return undefined;
    },
    freeze: (id, text) => {
      const stored = parseJson(text);
      const parsed = StoredFreeze.safeParse(stored);
      if (parsed.success) {
        if (parsed.data.select === 'all' && !StoredForAll.safeParse(stored).success) logOnce(id, BEYOND_LIMITS);
        return parsed.data;
      }
      logOnce(id, 'a stored freeze is of another version or broken: nothing is written; unfreeze it and set it again');
      return frozenForSafety(id, stored);
    },
    approval: (_id, text) => StoredApproval.safeParse(parseJson(text)).data,
  };
}

/** A freeze that can't be parsed freezes everything, so that no frozen compute is written to. */
function frozenForSafety(id: string, stored: unknown): Freeze {
  const ends = z.looseObject({ expiresAtMs: z.number() }).safeParse(stored);
  return {
    id,
    owner: 'unknown',
    reason: 'the stored freeze cannot be read',
    createdAtMs: 0,
    expiresAtMs: ends.data?.expiresAtMs ?? Number.POSITIVE_INFINITY,
    select: 'all',
    allowRaise: false,
  };
}
