import pLimit from 'p-limit';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { type AdoptDeps, adoptProject } from '../evaluate-project/evaluate.ts';

const CONCURRENT_READS = 8;

/** Evaluates projects again that another daemon has changed since: what is done already must not be announced. */
export async function adoptNewerRecords(deps: AdoptDeps, projectIds: ReadonlySet<string>): Promise<void> {
  await pLimit(CONCURRENT_READS).map(projectIds, async (projectId) => {
    const records = await deps.store.records(projectId);
    const isOutdated = ([computeId, stored]: [string, ComputeRecord]) => {
      const known = deps.fleet.latestEvaluation(computeId)?.record;
      return known !== undefined && lastWrite(known) !== lastWrite(stored);
    };
    if ([...records].some(isOutdated)) await adoptProject(deps, projectId);
  });
}

/** Returns a text that is equal for records of the same last write, pending or ended. */
function lastWrite({ lastSentAtMs, intent }: ComputeRecord): string {
  return `${lastSentAtMs} ${intent?.atMs}`;
}
