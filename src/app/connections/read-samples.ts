import pLimit from 'p-limit';
import type { ConnectionSample, Store } from '../../ports/store.ts';

const CONCURRENT_READS = 16;

/** The stored counts of computes, by compute id; those without any are left out. */
export async function readSamples(
  store: Pick<Store, 'samples'>,
  computeIds: readonly string[],
): Promise<Map<string, readonly ConnectionSample[]>> {
  const found = new Map<string, readonly ConnectionSample[]>();
  await pLimit(CONCURRENT_READS).map(computeIds, async (computeId) => {
    const samples = await store.samples(computeId);
    if (samples.length > 0) found.set(computeId, samples);
  });
  return found;
}
