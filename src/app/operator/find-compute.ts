import { ID } from '../../ports/operator.ts';
import type { OperatorParts } from './parts.ts';

export interface ComputePlace {
  projectId: string;
  computeId: string;
}

export function isId(text: string): boolean {
  return ID.test(text);
}

/** Records of so many projects are read at a time. */
const READ_AT_A_TIME = 16;

/**
 * Where a compute is: as the daemon's picture knows it, else as the store remembers it. `PROJECT/COMPUTE` is believed.
 * Undefined for one that ebb has never met, and for what is no id.
 */
export async function findCompute(parts: OperatorParts, written: string): Promise<ComputePlace | undefined> {
  const [first = '', second] = written.split('/', 2);
  if (second !== undefined) return isId(first) && isId(second) ? { projectId: first, computeId: second } : undefined;
  if (!isId(first)) return undefined;
  const seen = parts.daemon?.fleet.known(first)?.conclusion.compute;
  if (seen) return { projectId: seen.projectId, computeId: first };
  return findInStore(parts, first);
}

async function findInStore({ store }: OperatorParts, computeId: string): Promise<ComputePlace | undefined> {
  const projectIds = await store.projectIds();
  for (let start = 0; start < projectIds.length; start += READ_AT_A_TIME) {
    const some = projectIds.slice(start, start + READ_AT_A_TIME);
    const found = await Promise.all(some.map(async (projectId) => (await store.records(projectId)).has(computeId)));
    const projectId = some[found.indexOf(true)];
    if (projectId !== undefined) return { projectId, computeId };
  }
  return undefined;
}

/** What to say of a compute that was not found. */
export function unknownCompute(written: string): string {
  const [first = '', second] = written.split('/', 2);
  if (!isId(first) || (second !== undefined && !isId(second))) {
    return `${JSON.stringify(written.slice(0, 80))} is not the id of a compute, such as ep-cool-sea-12345678`;
  }
  return `ebb has not met a compute ${written}: check the id, or write PROJECT/COMPUTE`;
}
