import { filterInTurns } from '../../common/in-turns.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { InFlightDocument } from '../../ports/documents.ts';
import type { PendingWrite } from '../../ports/store.ts';
import { settingsDocument } from './documents.ts';
import type { OperatorParts } from './parts.ts';

/**
 * The changes that were under way when holds or freezes were stored: read after that, it misses none that was decided without them. Of one
 * project, or of all. `concerns` is asked about computes that the daemon knows; of another, nobody can tell, so it is named.
 */
export async function inFlight(
  { store, clock, daemon }: OperatorParts,
  { projectId, concerns }: { projectId?: string; concerns: (computeId: string, compute?: Compute) => boolean },
): Promise<InFlightDocument[]> {
  const pending = await store.pendingWrites(projectId);
  const computeOf = (computeId: string) => daemon?.fleet.known(computeId)?.evaluatedCompute.compute;
  const concerned = await filterInTurns(pending, ({ computeId }) => concerns(computeId, computeOf(computeId)), clock);
  return concerned.flatMap(inFlightDocument).toSorted((a, b) => (a.compute_id < b.compute_id ? -1 : 1));
}

function inFlightDocument({ projectId, computeId, record: { intent } }: PendingWrite): InFlightDocument[] {
  if (!intent) return [];
  const { fields = {}, restart = false, atMs } = intent;
  const since = isoInstant(atMs);
  return [{ project_id: projectId, compute_id: computeId, to: settingsDocument(fields), restart, since }];
}
