/** A billing month of a few projects under a budget, in steps of 15 minutes, decided by the functions that the daemon calls. */

import { advanceBudgets } from '../../src/app/usage/budget-rounds.ts';
import { openBudgets, spansOf } from '../../src/app/usage/budget-store.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { FIELD_GROUPS, fieldsOf } from '../../src/domain/compute/compute.ts';
import { evaluateNow } from '../../src/domain/evaluate/evaluate.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import { type CompiledPolicies, withBudgetSteps } from '../../src/domain/policy/compiled-policies.ts';
import type { StepSpan } from '../../src/domain/spend/terms.ts';
import { DAY_MS } from '../../src/domain/time/units.ts';
import { mergeUsage } from '../../src/domain/usage/stored.ts';
import { aBudget, compiled, NO_COSTS } from '../support/builders.ts';
import { diceFrom } from '../support/dice.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { connectionsOf, countClients, HEADROOM_POLICY, mayHaveCu, PROFILE } from './budget-exceptions.ts';
import {
  type Arriving,
  arrived,
  createProject,
  FROM_MS,
  PROJECTS,
  type Project,
  SLOT_MS,
  SLOT_SECONDS,
  SLOTS,
  START_MS,
  stallsOf,
  sum,
  TO_MS,
  useSlot,
} from './simulated-project.ts';

const LIMIT = { maxCu: 1, seconds: 300 };
const ORGANIZATION = { account: 'default', organization: 'org' };

/** What makes a month hard for a budget. */
export interface MonthOptions {
  /** What the month would use without limits, as a share of the amount. */
  ratio: number;
  /** From this day of the month on nothing of its usage arrives. */
  dataUntilDay?: number;
}

export interface SimulatedBudget {
  /** What was used of the amount, and what would have been without limits. */
  used: number;
  without: number;
  /** Changes of a size or a timeout in the month by steps, by compute. */
  changes: number[];
  /** Of these, those that disconnected clients. */
  disconnected: number;
  /** Clients that a size refused which they would not have had without steps. */
  refused: number;
  /** Records with a person's change, or one that was reverted, where no person has changed anything; and reversals of what a person has. */
  takenForPeople: number;
  /** Changes of a person that were respected, raises by headroom, and slots in which a hold gave more than the limits. */
  exceptions: { byHand: number; raises: number; held: number };
  spans: readonly StepSpan[];
  /** When the known usage reached the amount, at the earliest; undefined if it did not in the month. */
  knownCrossingMs: number | undefined;
  /** Since then: computes that slept with more than the last step allows, later than 15 minutes after it. */
  lateSleepers: number;
  /** Slots in which the scope used more than its limits allow. */
  slotsBeyond: number;
}

/** Runs one month; the same seed has the same clients. Every second one is in dollars, every third one has hours that stay unknown. */
export async function simulateBudget(options: MonthOptions, seed: number): Promise<SimulatedBudget> {
  const unit = seed % 2 === 0 ? 'usd' : 'cu_hours';
  const free = await runMonth({ seed, unit, ...options });
  const amount = free.used / options.ratio;
  const { used, ...limited } = await runMonth({ seed, unit, amount, ...options });
  return { ...limited, used: used / amount, without: options.ratio };
}

const STEPS = [
  { at: 0.8, of: 'projected' as const, notify: ['team'] },
  { at: 0.95, of: 'projected' as const, notify: [], limits: { suspend_timeout: { low: 0, high: LIMIT.seconds } } },
  {
    ...{ at: 1, of: 'spent' as const, notify: [] },
    limits: { size: { low: 0, high: LIMIT.maxCu }, suspend_timeout: { low: 0, high: LIMIT.seconds } },
  },
];

/** The plan changes in the middle of the month: 0.1 and 0.2 dollars a CU-hour. */
const PLAN_CHANGE_MS = FROM_MS + 14 * DAY_MS;

const PRICES = { usd: [0.1, 0.2], cu_hours: [1, 1] } as const;

interface MonthInput extends MonthOptions {
  seed: number;
  unit: 'usd' | 'cu_hours';
  /** Absent: there is no budget. */
  amount?: number;
}

async function runMonth({ seed, unit, amount, dataUntilDay }: MonthInput) {
  const dice = diceFrom(seed);
  const projects = Array.from({ length: PROJECTS }, (_, index) => createProject(index, dice, { seed }));
  const lateMs = stallsOf(dice);
  const dataUntilMs = dataUntilDay === undefined ? TO_MS + DAY_MS : FROM_MS + (dataUntilDay - 1) * DAY_MS;
  const leader = await createLeader(projects, { unit, amount: amount ?? 1 });
  const seen: Seen = { used: 0, disconnected: 0, lateSleepers: 0, slotsBeyond: 0, refused: 0, byHand: 0, held: 0 };
  const priceAt = (nowMs: number) =>
    unit === 'cu_hours' || nowMs < PLAN_CHANGE_MS ? PRICES[unit][0] : PRICES[unit][1];
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const nowMs = START_MS + slot * SLOT_MS;
    if (amount !== undefined)
      seen.disconnected += await limitSlot(projects, leader, slot, { nowMs, dataUntilMs, lateMs });
    const isOver = isDue(leader.knownCrossingMs(), nowMs);
    const ofSlot = passSlot(projects, slot, { nowMs, isOver, seen });
    if (amount !== undefined) for (const project of projects) passClients(project, slot, { nowMs, isOver, seen });
    if (nowMs >= FROM_MS) seen.used += (ofSlot / 3600) * priceAt(nowMs);
  }
  const { byHand, held, ...figures } = seen;
  return {
    ...{ ...figures, changes: projects.map(({ changes }) => changes), spans: leader.policies().budgetSteps },
    knownCrossingMs: leader.knownCrossingMs(),
    takenForPeople: projects.filter(isTakenForPeople).length,
    exceptions: { byHand, held, raises: sum(projects.map(({ raises }) => raises)) },
  };
}

/** What leader and daemon do in a slot; gives how many changes disconnected clients. */
async function limitSlot(
  projects: readonly Project[],
  leader: Leader,
  slot: number,
  arriving: Arriving,
): Promise<number> {
  const isHour = slot % 4 === 0;
  if (isHour) await leader.collect(arriving);
  if (arriving.nowMs < FROM_MS) return 0;
  if (isHour) await leader.decide(arriving.nowMs);
  return sum(projects.map((project) => apply(project, leader.policies(), slot)));
}

/** What is counted over a month. */
type Seen = Record<'used' | 'disconnected' | 'lateSleepers' | 'slotsBeyond' | 'refused' | 'byHand' | 'held', number>;

interface Passing {
  nowMs: number;
  /** Since the amount was reached, and a slot besides. */
  isOver: boolean;
  seen: Seen;
}

/** Uses what all want within what they have; gives the CU-seconds. */
function passSlot(projects: readonly Project[], slot: number, { nowMs, isOver, seen }: Passing): number {
  if (isOver) seen.lateSleepers += projects.filter((project) => mustBeLimited(project, nowMs)).length;
  const most = sum(projects.map((project) => SLOT_SECONDS * mostOf(project, nowMs, isOver)));
  const used = useTogether(projects, slot);
  if (isOver && used > most + 1e-6) seen.slotsBeyond += 1;
  return used;
}

/** What clients and people do in a slot. */
function passClients(project: Project, slot: number, { nowMs, isOver, seen }: Passing): void {
  const { exceptions, compute, demand } = project;
  seen.refused += countClients(exceptions, compute, demand[slot] ?? 0, nowMs);
  seen.byHand += changeByHand(project, nowMs + SLOT_MS);
  if (isOver && exceptions.holds.length > 0 && compute.maxCu > LIMIT.maxCu) seen.held += 1;
}

function isDue(crossingMs: number | undefined, nowMs: number): boolean {
  return crossingMs !== undefined && nowMs > crossingMs + SLOT_MS;
}

function mustBeLimited(project: Project, nowMs: number): boolean {
  const { compute, record, exceptions } = project;
  const mostCu = mayHaveCu(exceptions, record, LIMIT.maxCu, nowMs);
  const isWithin = compute.maxCu <= mostCu && compute.suspendTimeoutSeconds <= LIMIT.seconds;
  return compute.state === 'idle' && !isWithin;
}

/** What a project may use in a slot, in CU: asleep it comes under the limits, awake it keeps what it had or was given. */
function mostOf(project: Project, nowMs: number, isOver: boolean): number {
  const { compute, record, exceptions } = project;
  if (!isOver) return compute.maxCu;
  const mostCu = mayHaveCu(exceptions, record, LIMIT.maxCu, nowMs);
  project.allowedCu = compute.state === 'idle' ? mostCu : Math.max(project.allowedCu ?? compute.maxCu, mostCu);
  return project.allowedCu;
}

/** A person sets a size; gives how many have done so. */
function changeByHand(project: Project, nowMs: number): number {
  const change = project.exceptions.byHand.find(({ atMs }) => atMs === nowMs);
  if (!change || (change.size.maxCu === project.compute.maxCu && change.size.minCu === project.compute.minCu)) return 0;
  project.compute = { ...project.compute, ...change.size };
  project.isChangedByHand = true;
  return 1;
}

function isTakenForPeople({ record: { manual, reversals }, isChangedByHand }: Project): boolean {
  return reversals !== undefined || (manual !== undefined && !isChangedByHand);
}

function useTogether(projects: readonly Project[], slot: number): number {
  const hour = Math.floor(slot / 4);
  return sum(
    projects.map((project) => {
      const used = useSlot(project, slot);
      project.hours[hour] = (project.hours[hour] ?? 0) + used;
      return used;
    }),
  );
}

type Leader = Awaited<ReturnType<typeof createLeader>>;

/** What the leader does once an hour. */
async function createLeader(projects: readonly Project[], month: { unit: 'usd' | 'cu_hours'; amount: number }) {
  let policies = compiled(aBudget({ month, steps: STEPS, includeProtected: false }), HEADROOM_POLICY);
  let crossingMs: number | undefined;
  const documents = memoryDocumentStore();
  const stored = usageAccount(memoryUsageStore(), ORGANIZATION);
  const metadata = { hourMs: 0, dayMs: 0, months: [], gone: [], quantities: [], trials: [] };
  const launch: [number, string][] = [START_MS, FROM_MS].map((ms) => [ms, 'launch']);
  await stored.putMetadata({ ...metadata, plans: [...launch, [PLAN_CHANGE_MS, 'scale']] });
  return {
    policies: () => policies,
    knownCrossingMs: () => crossingMs,
    async collect(arriving: Arriving) {
      for (const project of projects) {
        project.usage = mergeUsage(project.usage, { buckets: arrived(project, arriving) }).usage;
      }
      await stored.put(projects.map(({ usage }) => usage));
    },
    async decide(nowMs: number) {
      const budgets = await openBudgets(documents);
      const { states } = await advanceBudgets({
        ...{ policies, costs: { ...NO_COSTS, plans: new Map() }, before: budgets.value ?? [], releases: [], nowMs },
        ...{ organizations: [{ ...ORGANIZATION, projectIds: [], stored }], computes: [] },
        projects: projects.map(({ projectId }) => ({
          account: ORGANIZATION.account,
          projectId,
          projectName: projectId,
        })),
      });
      await budgets.replace(states);
      const [state] = states;
      if (state && (state.spent ?? 0) >= state.month.amount) crossingMs ??= nowMs;
      policies = withBudgetSteps(policies, spansOf(states));
    },
  };
}

/**
 * Writes what is planned, and gives how many changes by steps disconnected clients. Between two hours only sleep, waking, connections and
 * people make a new plan.
 */
function apply(project: Project, policies: CompiledPolicies, slot: number): number {
  const { compute, exceptions } = project;
  if (exceptions.isPlain && slot % 4 !== 0 && compute.state === project.stateBefore) return 0;
  project.stateBefore = compute.state;
  const nowMs = START_MS + slot * SLOT_MS;
  const holds = exceptions.holds.filter(({ createdAtMs }) => createdAtMs <= nowMs);
  const record = updatedRecord(project.record, compute, { policies, holds, nowMs, enforcedSinceMs: 0 });
  const connections = connectionsOf(exceptions);
  const { plan } = evaluateNow({
    ...{ policies, compute, record, holds, nowMs, mode: 'enforce', projectBusy: false, profile: PROFILE },
    ...(connections && { connections }),
  });
  project.record = record;
  if (plan.verdict !== 'act') return 0;
  const fields = Object.assign({}, ...plan.actions.map((action) => action.fields));
  const ofSteps = plan.actions.filter((action) => isOfStep(project, action));
  project.changes += sum(
    ofSteps.map((action) => FIELD_GROUPS.filter((group) => fieldsOf(group, action.fields)).length),
  );
  const isRaise = plan.actions.some(({ policy, raises }) => policy === HEADROOM_POLICY.name && raises);
  if (isRaise) project.raises += 1;
  project.isRaised = isRaise || (project.isRaised && fields.maxCu === undefined);
  project.compute = { ...compute, ...fields };
  project.record = { ...record, lastApplied: { ...record.lastApplied, ...fields } };
  return ofSteps.filter(({ disconnects }) => disconnects).length;
}

function isOfStep({ exceptions, isRaised }: Project, { policy, fields }: Action): boolean {
  if (exceptions.isPlain) return true;
  return policy === 'budget' && !(isRaised && fields.maxCu !== undefined);
}
