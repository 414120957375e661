import pLimit from 'p-limit';
import { afterOperation, type Compute } from '../../domain/compute/compute.ts';
import { evaluateNow, settledSituation } from '../../domain/evaluate/evaluate.ts';
import { changesSizeAtFirstFlip } from '../../domain/evaluate/trials.ts';
import { type Action, gatesOf, type Plan } from '../../domain/plan/plan.ts';
import { type ComputeRecord, decidingFacts, firstRecord } from '../../domain/records/compute-record.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Store } from '../../ports/store.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import { type ProjectList, type ReadProjectDeps, readProject, readProjectList } from '../fleet/cached-projects.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { isAsRead } from '../fleet/project-list.ts';
import { needsBranches } from '../fleet/read-computes.ts';
import type { Overrides } from '../overrides.ts';
import { type CurrentRules, compileRules } from '../rules.ts';
import { CONTROL_API, isOfControlApi } from '../telemetry/outages.ts';

/** How many computes rules would disconnect once they are current. */
export interface DisruptionImpact {
  /** The number of computes that would be disconnected, at once or later. */
  disconnected: number;
  computes: number;
  /** How many of the disconnected computes would wait first, for example since ebb has just discovered or restarted them. */
  later?: number;
  /** How many of the disconnected computes may sleep or be gone: their projects can't be read now. */
  unknown?: number;
  /** The number of disconnected computes by policy, and the ids of some of them. */
  byPolicy?: Record<string, number>;
  examples?: string[];
}

const MAX_EXAMPLES = 3;

export interface MeasureImpactDeps extends ReadProjectDeps, EvaluateDeps {
  store: Store;
  overrides: Overrides;
}

/** Rules that disconnect at most this many computes need no approval. */
const MAX_UNAPPROVED_COMPUTES = 5;

/** Rules that disconnect at most this share of the computes need no approval. */
const MAX_UNAPPROVED_SHARE = 0.3;

const CONCURRENT_READS = 8;

/** In an outage, the list of projects is awaited for at most this long, in milliseconds: meanwhile this daemon reads no policy files. */
const OUTAGE_DEADLINE_MS = 5_000;

/** How many projects are evaluated before other work gets its turn. */
const PROJECTS_PER_TURN = 50;

/** Returns true if rules with this impact need a person's approval. */
export function needsApproval({ disconnected, computes }: DisruptionImpact): boolean {
  return disconnected > MAX_UNAPPROVED_COMPUTES && disconnected > MAX_UNAPPROVED_SHARE * computes;
}

/**
 * Counts how many of the computes that pass `isCounted` rules would disconnect. Projects that are not cached are read. Returns undefined if the
 * fleet can't be listed, in an outage that prevents further readings, or when aborted.
 *
 * Holds, freezes and manual changes are respected. Recent discovery, recent restarts, failures and limits on restarts are ignored, since they
 * pass by themselves: the restarts of an earlier set may still be under way. The first flip of a future trial counts, too, and so does a change
 * that is held only because its window ends soon. Computes that would not be disconnected at once for one of these reasons are among `later`.
 *
 * Invariant: a compute never counts as asleep by a reading that may be older than its last use. It counts as awake; before rules need an
 * approval because of such computes, their projects are read again.
 */
export async function measureImpact(
  deps: MeasureImpactDeps,
  rules: Rules,
  signal: AbortSignal,
  isCounted: (compute: Compute) => boolean = () => true,
): Promise<DisruptionImpact | undefined> {
  const candidateDeps: MeasureImpactDeps = { ...deps, rules: { current: compileRules(rules, deps.rules.current) } };
  const list = await readMissing(candidateDeps, signal);
  if (!list) return undefined;
  await deps.overrides.refresh(deps.store, deps.clock.now());
  const count = () => countDisconnected(candidateDeps, { list, isCounted, signal });
  const first = await count();
  if (!first || !needsApproval(first.impact)) return first?.impact;
  const isOld = ({ projectId }: Project) => !isReadSince(deps.fleet.cachedProject(projectId), list);
  await readEach(candidateDeps, first.counted, { isDue: isOld, signal });
  // In an outage no count can be relied on: the computes are counted once it is over.
  if (deps.outages.current().has(CONTROL_API)) return undefined;
  return (await count())?.impact;
}

interface CountOptions {
  list: ProjectList;
  isCounted(compute: Compute): boolean;
  signal: AbortSignal;
}

/** Counts by the cached readings. Also returns the projects with disconnected computes. Returns undefined when aborted. */
async function countDisconnected(
  deps: MeasureImpactDeps,
  { list, isCounted, signal }: CountOptions,
): Promise<{ impact: DisruptionImpact; counted: Project[] } | undefined> {
  const byPolicy: Record<string, number> = {};
  const impact = { disconnected: 0, computes: 0, later: 0, unknown: 0, byPolicy, examples: [] as string[] };
  const listed = new Map(list.projects.map((project) => [project.projectId, project]));
  const counted: Project[] = [];
  let turn = 0;
  for (const cached of [...deps.fleet.cachedProjects()]) {
    if (signal.aborted) return undefined;
    turn += 1;
    if (turn % PROJECTS_PER_TURN === 0) await deps.clock.nextTurn();
    const { project } = cached;
    const options = { list, listed: listed.get(project.projectId) };
    const { computes, records, onlyRecorded } = await presentState(deps, cached, options);
    const ofProject = computes.filter(isCounted);
    const found = ofProject.flatMap((compute) => {
      const disconnection = disconnectionOf(deps, compute, records.get(compute.computeId));
      if (disconnection === undefined) return [];
      if (impact.examples.length < MAX_EXAMPLES) impact.examples.push(compute.computeId);
      return [disconnection];
    });
    for (const { policy } of found) byPolicy[policy] = (byPolicy[policy] ?? 0) + 1;
    const unread = ofProject.length > 0 ? onlyRecorded : 0;
    const disconnected = found.length + unread;
    impact.later += found.filter(({ isLater }) => isLater).length;
    impact.computes += ofProject.length + unread;
    impact.disconnected += disconnected;
    if (disconnected === 0) continue;
    counted.push(listed.get(project.projectId) ?? project);
    if (!isReadSince(cached, list)) impact.unknown += disconnected;
  }
  return { impact, counted };
}

/**
 * Lists the projects, and reads those that are not cached, from the end of the list: after a start, the inventory reads from the beginning of
 * the list, and neither reads what the other has read. Returns the list; undefined if no account could be listed, or when aborted.
 */
async function readMissing(deps: MeasureImpactDeps, signal: AbortSignal): Promise<ProjectList | undefined> {
  const { fleet, outages } = deps;
  // An outage for one account counts too: its list is part of the whole.
  const isOutage = [...outages.current().keys()].some(isOfControlApi);
  const list = await readProjectList(deps, { signal, ...(isOutage && { deadlineMs: OUTAGE_DEADLINE_MS }) });
  if (signal.aborted || (list.projects.length === 0 && list.failures.size > 0)) return undefined;
  // A renamed project counts as missing, since policies select by name.
  const isMissing = ({ projectId, name }: Project) =>
    fleet.cachedProject(projectId)?.project.name !== name || lacksBranches(deps, projectId);
  await readEach(deps, list.projects.toReversed(), { isDue: isMissing, signal });
  return signal.aborted ? undefined : list;
}

async function readEach(
  deps: MeasureImpactDeps,
  projects: readonly Project[],
  { isDue, signal }: { isDue(project: Project): boolean; signal: AbortSignal },
): Promise<void> {
  await pLimit(CONCURRENT_READS).map(projects.filter(isDue), async (project) => {
    if (signal.aborted || !isDue(project)) return;
    await readProject(deps, project, { signal, records: await deps.store.records(project.projectId) });
  });
}

/** Returns true if policies or owners depend on branches, but the project was read without its branches. */
export function lacksBranches({ rules, fleet }: { rules: CurrentRules; fleet: Fleet }, projectId: string): boolean {
  return needsBranches(rules) && !fleet.branches.has(projectId);
}

function isReadSince(cached: CachedProject | undefined, { askedAtMonotonicMs }: ProjectList): boolean {
  return cached !== undefined && cached.readAtMonotonicMs >= askedAtMonotonicMs;
}

interface PresentState {
  computes: readonly Compute[];
  records: ReadonlyMap<string, ComputeRecord>;
  /** The number of computes that have a record but are not in the reading. */
  onlyRecorded: number;
}

/**
 * Returns the computes of a project as they may be by now, with the values that any daemon has set since the reading. They count as awake unless
 * the list or a new reading shows that they still sleep. If all certainly sleep, no records are read: sleeping computes can't be disconnected.
 */
async function presentState(
  { store }: MeasureImpactDeps,
  cached: CachedProject,
  { list, listed }: { list: ProjectList; listed: Project | undefined },
): Promise<PresentState> {
  const { project, computes, includedWrites } = cached;
  const isKnown = listed ? isAsRead(cached, listed) : !list.failures.has(project.account);
  const isCurrent = isReadSince(cached, list);
  if ((isKnown || isCurrent) && computes.every(isAsleep)) return { computes, records: new Map(), onlyRecorded: 0 };
  const records = await store.records(project.projectId);
  if (isCurrent) return { computes, records, onlyRecorded: 0 };
  const present = computes.map((compute) => {
    const expected = { ...afterOperation(compute) };
    const { lastSentAtMs, lastApplied } = records.get(expected.computeId) ?? {};
    if (!isKnown) expected.state = 'active';
    return lastSentAtMs === includedWrites?.get(expected.computeId) ? expected : Object.assign(expected, lastApplied);
  });
  const readIds = new Set(computes.map(({ computeId }) => computeId));
  const unread = [...records].filter(([id, { absentSinceMs }]) => absentSinceMs === undefined && !readIds.has(id));
  return { computes: present, records, onlyRecorded: unread.length };
}

interface Disconnection {
  /** The name of the policy that causes it; `trial` for the first flip of a trial. */
  policy: string;
  isLater: boolean;
}

/** Returns what disconnects the compute, now or once temporary states have passed; undefined if nothing does. */
function disconnectionOf(
  deps: EvaluateDeps,
  read: Compute,
  stored: ComputeRecord | undefined,
): Disconnection | undefined {
  if (isAsleep(read)) return undefined;
  const compute = afterOperation(read);
  const present = stored ?? firstRecord(compute, deps.clock.now());
  const record = withoutTemporaryStates(present);
  const situation = situationOf(deps, { compute, record, projectBusy: false });
  const { policies, nowMs, holds } = situation;
  if (changesSizeAtFirstFlip({ policies, compute, ...decidingFacts(record), holds }, nowMs))
    return { policy: 'trial', isLater: true };
  const { plan } = evaluateNow(settledSituation(situation));
  // A change that is held because its window ends soon will be made when the window opens next.
  const endsSoon = gatesOf(plan).includes('ends_soon') ? disconnecting(plan.held) : undefined;
  const found = disconnectingNow(plan) ?? endsSoon;
  if (found === undefined) return undefined;
  const planned = evaluateNow(settledSituation({ ...situation, record: present })).plan;
  return { policy: found.policy, isLater: disconnectingNow(planned) === undefined };
}

function disconnectingNow({ verdict, actions }: Plan): Action | undefined {
  return verdict === 'act' ? disconnecting(actions) : undefined;
}

function disconnecting(actions: readonly Action[] = []): Action | undefined {
  return actions.find(({ disconnects }) => disconnects);
}

/** Returns the record without states that pass by themselves, as if ebb had managed the compute for a long time. */
function withoutTemporaryStates(record: ComputeRecord): ComputeRecord {
  const { intent: _asked, failures: _failed, lastDisruption: _disturbed, ...rest } = record;
  return { ...rest, openOperations: [], enforcedSinceMs: 0 };
}

function isAsleep(compute: Compute): boolean {
  return afterOperation(compute).state === 'idle';
}
