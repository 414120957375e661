import type { ComputeSettings } from '../../domain/compute/compute.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { PastEntry } from '../../domain/records/past-lowerings.ts';
import { msOfIso } from '../../domain/time/units.ts';
import type { DecisionDocument } from '../../ports/documents.ts';
import { MAX_PER_PAGE, type Operator, type OperatorResult } from '../../ports/operator.ts';
import { itemsOfAllPages } from '../pages.ts';

/** The number of entries that the history keeps of a compute. */
const MAX_KEPT = 200;

export interface PastEntries {
  /** Oldest first, by compute id. */
  entries: ReadonlyMap<string, readonly PastEntry[]>;
  /** The projects of the computes that ebb has changed since the requested instant, by compute id. */
  projectOf: ReadonlyMap<string, string>;
  /** The oldest entry of the audit since that instant, milliseconds since the epoch; undefined if there is none. */
  oldestMs: number | undefined;
  /** Ids of changed computes whose history begins later than that instant: earlier failures and changes by people are missing. */
  cut: readonly string[];
}

/** Reads ebb's actions after an instant from the audit, and what failed and what people changed from the history. */
export async function readPastEntries(
  operator: Pick<Operator, 'audit' | 'decisions'>,
  sinceMs: number,
): Promise<OperatorResult<PastEntries>> {
  const audit = await itemsOfAllPages((query) =>
    operator.audit({ ...query, sinceMs, untilMs: Number.MAX_SAFE_INTEGER }),
  );
  if (!audit.ok) return audit;
  const found: DecisionDocument[] = audit.value;
  const oldest = found.at(-1);
  const projectOf = new Map(
    found.flatMap(({ kind, compute_id, project_id }) => (kind === 'write' ? [[compute_id, project_id] as const] : [])),
  );
  const cut: string[] = [];
  for (const compute of projectOf.keys()) {
    const history = await operator.decisions({ compute, limit: MAX_PER_PAGE });
    if (!history.ok) return history;
    found.push(...history.value.filter(({ kind }) => kind === 'manual' || kind === 'operation'));
    const last = history.value.at(-1);
    if (last && history.value.length >= MAX_KEPT && msOfIso(last.at) > sinceMs) cut.push(compute);
  }
  const inOrder = found.reverse().toSorted((a, b) => msOfIso(a.at) - msOfIso(b.at));
  const entries = groupBy(inOrder, ({ compute_id }) => compute_id);
  return {
    ok: true,
    value: {
      entries: new Map([...entries].map(([computeId, documents]) => [computeId, documents.map(entryOf)])),
      projectOf,
      oldestMs: oldest && msOfIso(oldest.at),
      cut,
    },
  };
}

function entryOf({ at, kind, policy, from, to, reasons, request_id }: DecisionDocument): PastEntry {
  return {
    atMs: msOfIso(at),
    kind,
    reasons,
    ...(policy !== null && { policy }),
    ...(from && { from: settingsIn(from) }),
    ...(to && { to: settingsIn(to) }),
    ...(request_id !== null && { requestId: request_id }),
  };
}

function settingsIn(document: NonNullable<DecisionDocument['from']>): Partial<ComputeSettings> {
  const { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds } = document;
  return {
    ...(minCu !== undefined && minCu !== null && { minCu }),
    ...(maxCu !== undefined && maxCu !== null && { maxCu }),
    ...(suspendTimeoutSeconds !== undefined && suspendTimeoutSeconds !== null && { suspendTimeoutSeconds }),
  };
}
