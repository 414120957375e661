import { mapInTurns } from '../../common/in-turns.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { decide } from '../../domain/decide/decide.ts';
import { describeValue, type TraceStep } from '../../domain/decide/trace.ts';
import { describeHold, type Hold } from '../../domain/overrides/holds.ts';
import { changedSinceHold, describeManualChange } from '../../domain/plan/manual-changes.ts';
import type { Plan } from '../../domain/plan/plan.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import { EVERY_COMPUTE } from '../../domain/policy/selector.ts';
import { type ComputeRecord, decidingFacts } from '../../domain/records/compute-record.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { HoldDocument } from '../../ports/documents.ts';
import type { HoldRequest, OperatorResult, Page, PageQuery } from '../../ports/operator.ts';
import { holdProblem } from './check-request.ts';
import { holdDocument, pageOf } from './documents.ts';
import { findCompute } from './find-compute.ts';
import { inFlight } from './in-flight.ts';
import { auditOf, type DaemonView, fail, type OperatorParts, shortId } from './parts.ts';

/** One team may have this many holds, so that it doesn't use up the limit of the store. */
const MAX_HOLDS_OF_TEAM = 1000;

/** Stores a hold of one compute, and requests a reconcile of its project. */
export async function setHold(parts: OperatorParts, request: HoldRequest): Promise<OperatorResult<HoldDocument>> {
  const problem = holdProblem(request);
  if (problem !== undefined) return fail('invalid', problem);
  const found = await findCompute(parts, request.compute);
  if (!found.ok) return found;
  const place = found.value;
  const teams = parts.caller?.teams;
  const nowMs = await parts.now();
  const overQuota = teams && quotaProblem(await parts.store.holds(nowMs), teams);
  if (overQuota !== undefined) return fail('full', overQuota);
  const hold: Hold = {
    ...newHold(request, { ...place, id: shortId('h', parts.newId) }, nowMs),
    ...(teams && { teams }),
  };
  const { owner, createdAtMs: atMs } = hold;
  const command = { kind: 'hold', code: 'hold', message: auditText(hold), owner, atMs, ...place } as const;
  const put = await parts.store.putHold(hold, { audit: await auditOf(parts, command) });
  if (!put.ok) return fail('full', `there are ${put.error.limit} holds already: release some`);
  await parts.requestReconciles([hold.projectId]);
  const { projectId } = place;
  const in_flight = await inFlight(parts, { projectId, concerns: (id) => id === place.computeId });
  return { ok: true, value: { ...holdDocument(hold, await limitOfNew(parts, hold)), in_flight } };
}

/** Returns the problem if a team has reached its quota. The quota is soft: two daemons that are asked at once may each grant the last hold. */
function quotaProblem(holds: readonly Hold[], teams: readonly string[]): string | undefined {
  const full = teams.find((team) => holds.filter((hold) => hold.teams?.includes(team)).length >= MAX_HOLDS_OF_TEAM);
  return full && `team ${full} has ${MAX_HOLDS_OF_TEAM} holds, the most that a team may have: release some`;
}

/** Lists active holds by project and compute, oldest first. */
export async function listHolds(parts: OperatorParts, query: PageQuery): Promise<OperatorResult<Page<HoldDocument>>> {
  const holds = await parts.store.holds(await parts.now());
  const byCompute = ({ projectId, computeId, createdAtMs, id }: Hold) =>
    `${projectId}/${computeId}/${isoInstant(createdAtMs)}/${id}`;
  const { items, next } = pageOf(holds, byCompute, query);
  const limitOf = await limitsOf(parts, items);
  const documents = await mapInTurns(items, (hold) => holdDocument(hold, limitOf(hold)), parts.clock);
  return { ok: true, value: { items: documents, next } };
}

export async function findHold(parts: OperatorParts, id: string): Promise<OperatorResult<HoldDocument>> {
  const holds = await parts.store.holds(await parts.now());
  const hold = holds.find((one) => one.id === id);
  if (!hold) return fail('not_found', 'there is no such hold: it has expired or was released');
  return { ok: true, value: holdDocument(hold, (await limitsOf(parts, [hold]))(hold)) };
}

function newHold(request: HoldRequest, place: Pick<Hold, 'id' | 'projectId' | 'computeId'>, nowMs: number): Hold {
  const { owner, reason, forSeconds, size, suspendTimeoutSeconds, freeze } = request;
  return {
    ...place,
    owner,
    reason,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + forSeconds * 1000,
    ...(size && { size }),
    ...(suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds }),
    ...(freeze && { freeze: true as const }),
  };
}

function auditText(hold: Hold): string {
  return `held: ${describeHold(hold)}, until ${isoInstant(hold.expiresAtMs)}: ${hold.reason}`;
}

/* What becomes of a hold's values, so that people are told what the compute really gets. */

/** Describes how hard limits change a hold at its start, and manual changes after it; null if nothing does. */
export type LimitOf = (hold: Hold) => string | null;

/** Returns the limits by the daemon's policies. Of a compute that the daemon does not know yet, only the ids count. */
export function limitsOfDaemon({ fleet, policies }: DaemonView): LimitOf {
  return (hold) => {
    const evaluated = fleet.latestEvaluation(hold.computeId);
    if (!evaluated) return limitByIds(policies().set.policies, hold, 'caps');
    const { compute, record, plan } = evaluated;
    const { trace } = decide({
      policies: policies(),
      compute,
      ...decidingFacts(record),
      holds: [hold],
      instantMs: hold.createdAtMs,
    });
    return inOne(
      describeCaps(trace, () => 'caps'),
      changedByHand(hold, record, plan),
    );
  };
}

/** Returns the limits of these holds by the policies of the daemon or, without a daemon, by the policies of this machine and the stored records. */
export async function limitsOf(
  parts: Pick<OperatorParts, 'daemon' | 'policies' | 'store'>,
  holds: readonly Hold[],
): Promise<LimitOf> {
  const limitOf = await limitsByPolicies(parts);
  if (parts.daemon) return limitOf;
  const projectIds = [...new Set(holds.map(({ projectId }) => projectId))];
  const read = await Promise.all(projectIds.map((projectId) => parts.store.records(projectId)));
  const records = new Map(read.flatMap((ofProject) => [...ofProject]));
  return (hold) => inOne(limitOf(hold), changedByHand(hold, records.get(hold.computeId)));
}

async function limitsByPolicies({ daemon, policies }: Pick<OperatorParts, 'daemon' | 'policies'>): Promise<LimitOf> {
  if (daemon) return limitsOfDaemon(daemon);
  const local = await policies?.();
  return (hold) => (local ? limitByIds(local.set.policies, hold, local.areCurrent ? 'caps' : 'may cap') : null);
}

/** Describes a person's later changes of the held values; with `plan` also until when they are respected. */
function changedByHand(hold: Hold, record: ComputeRecord | undefined, plan?: Plan): string | null {
  if (!record) return null;
  const texts = changedSinceHold(hold, record).map((group) => {
    const gate = plan?.waiting.find((one) => one.group === group && one.gate.code === 'manual_change')?.gate;
    return gate?.message ?? describeManualChange(group, record.lastApplied, record.manual?.[group]?.fields ?? {});
  });
  return texts.length > 0 ? `not now: ${texts.join('; ')}` : null;
}

function inOne(...texts: (string | null)[]): string | null {
  const all = texts.filter((text) => text !== null);
  return all.length > 0 ? all.join('; ') : null;
}

/** Describes how hard limits change a new hold. Also says so if the daemons' hard limits are unknown. */
async function limitOfNew(parts: Pick<OperatorParts, 'daemon' | 'policies'>, hold: Hold): Promise<string | null> {
  const limited = (await limitsByPolicies(parts))(hold);
  const setsNothing = hold.size === undefined && hold.suspendTimeoutSeconds === undefined;
  if (limited !== null || setsNothing || parts.daemon || (await parts.policies?.())?.areCurrent) return limited;
  return 'hard limits still apply, and those of the daemons are not known here';
}

type Verb = 'caps' | 'may cap';

/** Returns the limits of a compute of which only the ids are known. `verb` is for policies that certainly select it; for others it is `may cap`. */
function limitByIds(policies: readonly Policy[], hold: Hold, verb: Verb): string | null {
  const { projectId, computeId, createdAtMs } = hold;
  const ids = { projectId, computeId, projectName: projectId, projectNameUnknown: true, branchId: '' } as Compute;
  const certain = new Set<string>();
  const mayCap = policies.flatMap((policy) => {
    if (!ruleOf(policy).overridesHolds(policy) || policy.mode !== 'enforce') return [];
    const { accounts, regions, types, minAgeMs, ...byNames } = policy.select;
    const selection = compileSelector({ ...byNames, minAgeMs: 0 })({ ...ids, createdAtMs }, createdAtMs);
    if (selection === 'no') return [];
    const needsMoreThanIds = accounts !== undefined || regions !== undefined || types !== undefined || minAgeMs > 0;
    if (selection === 'yes' && !needsMoreThanIds) certain.add(policy.name);
    return [{ ...policy, select: EVERY_COMPUTE }];
  });
  const compute: Compute = {
    ...ids,
    account: '',
    regionId: '',
    type: 'read_write',
    state: 'idle',
    disabled: false,
    createdAtMs,
    minCu: 1,
    maxCu: 1,
    suspendTimeoutSeconds: 300,
    ...hold.size,
  };
  const set: PolicySet = { hash: '', policies: mayCap, sources: new Map() };
  const input = { policies: compilePolicies(set), compute, baseline: undefined, holds: [hold], instantMs: createdAtMs };
  return describeCaps(decide(input).trace, (policy) => (certain.has(policy) ? verb : 'may cap'));
}

function describeCaps(trace: readonly TraceStep[], verbOf: (policy: string) => Verb): string | null {
  const capped = trace.flatMap(({ code, policy, before, after }) => {
    if (code !== 'hard_limit' || !policy || isNothing(before) || isNothing(after)) return [];
    const values = `${describeValue(before)} → ${describeValue(after)}`;
    return [`hard limit ${policy.name} ${verbOf(policy.name)} it: ${values}`];
  });
  return capped.length > 0 ? capped.join('; ') : null;
}

function isNothing(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
