import { filterInTurns } from '../../common/in-turns.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { InFlightDocument } from '../../ports/documents.ts';
import type { LocatedRecord } from '../../ports/store.ts';
import { settingsDocument } from './documents.ts';
import type { OperatorParts } from './parts.ts';

/**
 * Returns the pending writes, of one project or of all. After a hold or freeze was stored, they include every change under way that was decided
 * without it. `concerns` gets the compute if the daemon knows it, otherwise only the id.
 */
export async function inFlight(
  { store, clock, daemon }: OperatorParts,
  { projectId, concerns }: { projectId?: string; concerns: (computeId: string, compute?: Compute) => boolean },
): Promise<InFlightDocument[]> {
  const pending = await store.pendingWrites(projectId);
  const computeOf = (computeId: string) => daemon?.fleet.latestEvaluation(computeId)?.compute;
  const concerned = await filterInTurns(pending, ({ computeId }) => concerns(computeId, computeOf(computeId)), clock);
  return concerned.flatMap(inFlightDocument).toSorted((a, b) => (a.compute_id < b.compute_id ? -1 : 1));
}

function inFlightDocument({ projectId, computeId, record: { intent } }: LocatedRecord): InFlightDocument[] {
  if (!intent) return [];
  const { fields = {}, restart = false, atMs } = intent;
  const since = isoInstant(atMs);
  return [{ project_id: projectId, compute_id: computeId, to: settingsDocument(fields), restart, since }];
}
