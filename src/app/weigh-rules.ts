import { setImmediate as nextTurn } from 'node:timers/promises';
import { compilePolicies } from '../domain/compiled-policies.ts';
import type { Compute } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import { judgeNow } from '../domain/judge.ts';
import { firstRecord } from '../domain/records.ts';
import type { Rules } from '../ports/rules.ts';
import { situationOf } from './conclude.ts';
import type { Context } from './context.ts';
import type { Picture } from './fleet.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { readPicture, readProjectList } from './pictures.ts';

/** How much rules would change at once. */
export interface Weight {
  /** Computes that would be disconnected as soon as the rules come into force. */
  disconnected: number;
  computes: number;
}

/** Up to so many computes nobody is asked. */
const FEW = 5;

/** Up to this share neither. */
const SHARE = 0.3;

const CONCURRENT_READS = 8;

/** How many projects are judged before others get their turn. */
const PROJECTS_A_TURN = 50;

/** True if so much must not happen without a person's word. */
export function isTooMuch({ disconnected, computes }: Weight): boolean {
  return disconnected > FEW && disconnected > SHARE * computes;
}

/** The part of the context that rules are. */
export function decidingBy({ policies, ...others }: Rules) {
  return { policies: compilePolicies(policies), ...others };
}

/**
 * Counts what rules would do now, on the whole fleet: what this daemon has no picture of is read. Undefined if the fleet can't be
 * listed. Holds, freezes and people's changes count as they would; that ebb has only just met a compute, or that it was
 * restarted a moment ago, does not: it passes by itself.
 */
export async function weighRules(context: Context, rules: Rules, signal: AbortSignal): Promise<Weight | undefined> {
  const asIf: Context = { ...context, ...decidingBy(rules) };
  if (!(await readMissing(asIf, signal))) return undefined;
  await context.overrides.refresh(context.store, context.clock.now());
  const weight = { disconnected: 0, computes: 0 };
  let turn = 0;
  for (const picture of [...context.fleet.pictures()]) {
    if (signal.aborted) return undefined;
    turn += 1;
    if (turn % PROJECTS_A_TURN === 0) await nextTurn();
    const records = await recordsOf(context, picture);
    weight.computes += picture.computes.length;
    for (const compute of picture.computes) {
      if (wouldDisconnect(asIf, compute, records.get(compute.computeId))) weight.disconnected += 1;
    }
  }
  return weight;
}

async function readMissing(context: Context, signal: AbortSignal): Promise<boolean> {
  const { fleet } = context;
  const { projects, failures } = await readProjectList(context, { signal });
  if (signal.aborted || (projects.length === 0 && failures.size > 0)) return false;
  const missing = projects.filter(({ projectId }) => !fleet.picture(projectId) || lacksBranches(context, projectId));
  await mapConcurrently(missing, CONCURRENT_READS, async (project) => {
    if (signal.aborted) return;
    fleet.list(project);
    await readPicture(context, project, { signal });
  });
  return !signal.aborted;
}

/** True if policies select by branch, and a project was read when none did. */
export function lacksBranches({ policies, fleet }: Context, projectId: string): boolean {
  return policies.selectsByBranch && !fleet.branches.has(projectId);
}

/** Of computes that sleep nobody asks. */
async function recordsOf(
  { fleet, store }: Context,
  { project, computes }: Picture,
): Promise<ReadonlyMap<string, ComputeRecord>> {
  if (computes.every(isAsleep)) return new Map();
  const known = new Map(
    fleet.conclusionsOf(project.projectId).map(({ compute, record }) => [compute.computeId, record]),
  );
  return computes.every(({ computeId }) => known.has(computeId)) ? known : store.records(project.projectId);
}

function wouldDisconnect(context: Context, compute: Compute, stored: ComputeRecord | undefined): boolean {
  if (isAsleep(compute)) return false;
  const record = atRest(stored ?? firstRecord(compute, context.clock.now()), compute);
  const { plan } = judgeNow(situationOf(context, { compute, record, projectBusy: false }));
  return plan.verdict === 'act' && plan.actions.some(({ disconnects }) => disconnects);
}

/** The record as it will be once what passes by itself has passed. */
function atRest(record: ComputeRecord, { minCu, maxCu }: Compute): ComputeRecord {
  const { intent: _asked, failures: _failed, lastDisruption: _disturbed, ...rest } = record;
  return { ...rest, openOperations: [], lastApplied: { minCu, maxCu, ...record.lastApplied } };
}

function isAsleep({ state }: Compute): boolean {
  return state === 'idle';
}
