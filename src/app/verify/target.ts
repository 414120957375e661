import type { Result } from '../../common/result.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { formatSize } from '../../domain/compute/compute-units.ts';
import { WEEK_MS } from '../../domain/time/units.ts';
import type { ApiResult } from '../../ports/control-api.ts';
import type { VerifyApi } from '../../ports/verify.ts';

/** `ebb verify` only uses projects whose names begin with this. */
export const NAME_PREFIX = 'ebb-verify-';
const OLDEST_MS = WEEK_MS;
/** With this size, a run of 15 minutes uses at most half a CU-hour. */
const LARGEST_CU = 2;
/** Twice the size of an empty project. */
const MAX_BYTES = 64 * 1024 * 1024;

export interface Target {
  name: string;
  createdAtMs: number;
  storageBytes: number;
  branches: number;
  computes: readonly Compute[];
}

/** Returns why a project may not be used, such as that it has data; undefined if it may. */
export function refusalOf({ name, createdAtMs, storageBytes, branches, computes }: Target, nowMs: number) {
  const [compute] = computes;
  if (!name.startsWith(NAME_PREFIX)) return `its name does not begin with ${NAME_PREFIX}: make a project for this`;
  if (nowMs - createdAtMs > OLDEST_MS) return 'it is older than a week: make a new one';
  if (branches > 1 || computes.length !== 1 || !compute) return 'it does not have exactly one branch with one compute';
  if (storageBytes > MAX_BYTES) return 'it has data: make an empty project';
  if (compute.type !== 'read_write' || compute.disabled) return 'its compute is not a primary, or is disabled';
  if (compute.maxCu > LARGEST_CU) return `its compute is larger than 2 CU (${formatSize(compute)}): make it smaller`;
  return undefined;
}

/** Reads a project and checks that it may be used. If the key may not list branches, their number is not checked. */
export async function findTarget(
  api: VerifyApi,
  { account, projectId, nowMs }: { account: string; projectId: string; nowMs: number },
): Promise<Result<Target & { compute: Compute }>> {
  const project = await api.project();
  if (!project.ok) return { ok: false, problem: `the project cannot be read: ${project.error.message}` };
  const computes = await api.listComputes({ account, projectId, name: project.value.name });
  if (!computes.ok) return { ok: false, problem: `its computes cannot be read: ${computes.error.message}` };
  if (computes.value.unreadable.length > 0) return { ok: false, problem: 'its compute is not understood' };
  const { branchBytes: storageBytes, ...facts } = project.value;
  const branches = await countBranches(api.listBranches(projectId));
  const target = { ...facts, storageBytes, branches, computes: computes.value.computes };
  const problem = refusalOf(target, nowMs);
  const [compute] = target.computes;
  return problem === undefined && compute
    ? { ok: true, value: { ...target, compute } }
    : { ok: false, problem: `project ${projectId} is not used: ${problem}` };
}

async function countBranches(pages: AsyncIterable<ApiResult<unknown[]>>): Promise<number> {
  let count = 0;
  for await (const page of pages) if (page.ok) count += page.value.length;
  return count;
}
