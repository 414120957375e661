import type { ApproveDocument } from '../../ports/command-documents.ts';
import type { ApproveRequest, OperatorResult } from '../../ports/operator.ts';
import { ownerProblem } from './check-request.ts';
import { unconfirmed } from './confirmed.ts';
import { readReports } from './daemon-reports.ts';
import { auditOf, fail, type OperatorParts } from './parts.ts';

/** The digest of a policy set, or enough of its beginning, as the log and `ebb status` give it. */
const HASH = /^[0-9a-f]{12,64}$/;

/** Makes a staged policy set current. */
export async function approve(parts: OperatorParts, request: ApproveRequest): Promise<OperatorResult<ApproveDocument>> {
  const { hash, owner, preview } = request;
  const problem = ownerProblem(owner);
  if (problem !== undefined) return fail('invalid', problem);
  if (!HASH.test(hash)) return fail('invalid', 'the hash of a policy set has hexadecimal digits only: see ebb status');
  const staged = parts.daemon?.staged();
  if (staged && !staged.some((one) => one.hash.startsWith(hash))) {
    const message = `the set that is staged is ${staged.map((one) => one.hash).join(', or ')}`;
    return fail('not_found', staged.length > 0 ? message : 'no policy set waits for approval');
  }
  const count = await disconnectedBy(parts, hash);
  const value = { hash, ...(count !== undefined && { count }) };
  if (preview) return { ok: true, value };
  const refused = count === undefined ? undefined : unconfirmed(request, count);
  if (refused) return refused;
  const atMs = await parts.now();
  const message = `policy set ${hash} may become current`;
  const audit = await auditOf(parts, { kind: 'approve', code: 'approved', message, owner, atMs });
  await parts.store.approve({ hash, who: owner, atMs }, { audit });
  await parts.requestReconciles(await parts.store.projectIds());
  return { ok: true, value };
}

/** How many computes the set would disconnect at once, as daemons have counted; undefined if none that runs has it. */
async function disconnectedBy({ daemon, store, now }: OperatorParts, hash: string): Promise<number | undefined> {
  if (daemon) return daemon.staged().find((one) => one.hash.startsWith(hash))?.impact.disconnected;
  const sets = (await readReports(store, await now())).flatMap(({ staged_sets = [] }) => staged_sets);
  return sets.find((one) => one.hash.startsWith(hash))?.disconnected;
}
