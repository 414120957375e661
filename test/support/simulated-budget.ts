/** A billing month of a few projects under a budget, in steps of 15 minutes, decided by the functions that the daemon calls. */
import { openBudgets, spansOf } from '../../src/app/usage/budget-store.ts';
import { advanceBudgets } from '../../src/app/usage/budgets.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import type { StepSpan } from '../../src/domain/budget/terms.ts';
import { type Compute, FIELD_GROUPS, fieldsOf } from '../../src/domain/compute/compute.ts';
import { evaluateNow } from '../../src/domain/evaluate/evaluate.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import { type CompiledPolicies, withBudgetSteps } from '../../src/domain/policy/compiled-policies.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/usage/known.ts';
import { mergeUsage, noUsage, type UnitUsage } from '../../src/domain/usage/stored.ts';
import type { UsageBucket } from '../../src/domain/usage/usage.ts';
import { aBudget, aCompute, aRecord, compiled, NO_COSTS } from './builders.ts';
import { memoryDocumentStore } from './memory-documents.ts';
import { memoryUsageStore } from './memory-usage.ts';
import { diceFrom } from './simulated-trial.ts';

const SLOT_MS = 15 * 60_000;
const SLOT_SECONDS = 900;
const MONTH_DAYS = 30;
const HISTORY_DAYS = 35;
const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
export const TO_MS = FROM_MS + MONTH_DAYS * DAY_MS;
const START_MS = FROM_MS - HISTORY_DAYS * DAY_MS;
const SLOTS = (MONTH_DAYS + HISTORY_DAYS) * 96;
const PROJECTS = 6;
/** What clients had before there was a budget. */
const HAD = { minCu: 0.25, maxCu: 4, suspendTimeoutSeconds: 3600 };
const LIMIT = { maxCu: 1, seconds: 300 };
const ORGANIZATION = { account: 'default', organization: 'org' };
const LISTED = { account: 'default', regionId: 'r', updatedAtMs: 0 };

type Dice = ReturnType<typeof diceFrom>;

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
  /** Changes of a size or a timeout in the month, by compute. */
  changes: number[];
  /** Changes that disconnected clients. */
  disconnected: number;
  /** Marks of manual changes, and reversals of such, in any record. */
  takenForPeople: number;
  spans: readonly StepSpan[];
  /** When the known usage reached the amount, at the earliest; undefined if it did not in the month. */
  knownCrossingMs: number | undefined;
  /** Since then: computes that slept with more than the last step allows, later than 15 minutes after it. */
  lateSleepers: number;
  /** Slots in which the scope used more than its limits allow. */
  slotsBeyond: number;
}

interface Wobble {
  level: number;
  noise: number;
  spike: number;
}

/** Each week and day: a walk, jumps, noise that lasts for some days, and now and then a day of four times as much. */
function nextDay({ level, noise }: Wobble, day: number, { normal, uniform }: Dice): Wobble {
  const walk = day % 7 === 0 ? 0.05 * normal() : 0;
  const jump = uniform() < 0.02 / 7 ? 0.7 * normal() : 0;
  return { level: level + walk + jump, noise: 0.5 * noise + 0.3 * normal(), spike: uniform() < 0.02 ? 4 : 1 };
}

/** The demand of one compute: CU that its clients want in each slot; 0 where there are none. */
function demandOf(dice: Dice): Float64Array {
  const size = Math.exp(0.6 * dice.normal());
  let today: Wobble = { level: 0, noise: 0.35 * dice.normal(), spike: 1 };
  const wanted = new Float64Array(SLOTS);
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const day = Math.floor(slot / 96);
    if (slot % 96 === 0) today = nextDay(today, day, dice);
    const { level, noise, spike } = today;
    const hour = (slot % 96) / 4;
    const isOffice = hour >= 8 && hour < 19 && (day + 2) % 7 < 5;
    const share = Math.min(1, (isOffice ? 0.6 : 0.12) * Math.exp(noise / 2) * Math.sqrt(spike));
    if (dice.uniform() < share) wanted[slot] = size * spike * Math.exp(level + noise + 0.3 * dice.normal());
  }
  return wanted;
}

/** A project with one compute, and what is known of it. */
interface Project {
  projectId: string;
  demand: Float64Array;
  compute: Compute;
  record: ComputeRecord;
  /** How long it stays awake if nobody comes. */
  awakeForSeconds: number;
  stateBefore: Compute['state'];
  changes: number;
  /** What it really used, in CU-seconds. */
  hours: number[];
  /** Hours that never become known. */
  missing: ReadonlySet<number>;
  usage: UnitUsage;
}

function createProject(index: number, dice: Dice, hasMissing: boolean): Project {
  const projectId = `dev-${index}`;
  const demand = demandOf(dice);
  const missing = Array.from({ length: 3 }, () => Math.floor((dice.uniform() * SLOTS) / 4));
  const compute = aCompute({
    ...{ ...HAD, projectId, projectName: projectId, computeId: `ep-${index}`, branchRoles: ['child'], state: 'idle' },
  });
  return {
    ...{ projectId, demand, compute, awakeForSeconds: 0, stateBefore: compute.state, changes: 0, hours: [] },
    record: aRecord({ baseline: HAD, lastApplied: HAD, firstSeenAtMs: START_MS }),
    missing: new Set(hasMissing ? missing : []),
    usage: noUsage({ projectId, branchId: null }),
  };
}

/** Uses what its clients want within its size, and stays awake for its timeout after they have gone. Gives the CU-seconds. */
function useSlot(project: Project, slot: number): number {
  const { compute, demand } = project;
  const wanted = demand[slot] ?? 0;
  if (wanted > 0) {
    project.awakeForSeconds = compute.suspendTimeoutSeconds;
    project.compute = { ...compute, state: 'active' };
    return Math.min(Math.max(wanted, compute.minCu), compute.maxCu) * SLOT_SECONDS;
  }
  const left = Math.min(project.awakeForSeconds, compute.suspendTimeoutSeconds);
  const seconds = Math.min(left, SLOT_SECONDS);
  project.awakeForSeconds = left - seconds;
  project.compute = { ...compute, state: left > seconds ? 'active' : 'idle' };
  return seconds * compute.minCu;
}

/** The stalls of a month: for six hours nothing arrives, and then all of it. */
type LateMs = (hour: number) => number;

function stallsOf({ uniform }: Dice): LateMs {
  const starts = Array.from({ length: 4 }, () => Math.floor((uniform() * SLOTS) / 4));
  return (hour) => {
    const start = starts.find((one) => hour >= one && hour < one + 6);
    return start === undefined ? 0 : (start + 6 - hour) * HOUR_MS;
  };
}

interface Arriving {
  nowMs: number;
  dataUntilMs: number;
  lateMs: LateMs;
}

/** The last hours, as far as they are known; and, once a day, the total of yesterday. */
function arrived({ hours, missing }: Project, { nowMs, dataUntilMs, lateMs }: Arriving): UsageBucket[] {
  const hourOf = (startMs: number) => Math.round((startMs - START_MS) / HOUR_MS);
  const buckets: UsageBucket[] = [];
  for (let startMs = nowMs - 12 * HOUR_MS; startMs + 3 * HOUR_MS <= nowMs; startMs += HOUR_MS) {
    const hour = hourOf(startMs);
    const isKnown = startMs < dataUntilMs && !missing.has(hour) && startMs + 3 * HOUR_MS + lateMs(hour) <= nowMs;
    buckets.push({ startMs, seconds: 3600, cuSeconds: isKnown ? (hours[hour] ?? 0) : null });
  }
  const dayMs = nowMs - 27 * HOUR_MS;
  const ofDay = Array.from({ length: 24 }, (_, index) => hourOf(dayMs) + index);
  const isWhole = dayMs >= START_MS && dayMs + DAY_MS <= dataUntilMs && !ofDay.some((hour) => missing.has(hour));
  if (dayMs % DAY_MS !== 0 || !isWhole) return buckets;
  return [...buckets, { startMs: dayMs, seconds: 86_400, cuSeconds: sum(ofDay.map((hour) => hours[hour] ?? 0)) }];
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
  const projects = Array.from({ length: PROJECTS }, (_, index) => createProject(index, dice, seed % 3 === 0));
  const lateMs = stallsOf(dice);
  const dataUntilMs = dataUntilDay === undefined ? TO_MS + DAY_MS : FROM_MS + (dataUntilDay - 1) * DAY_MS;
  const leader = await createLeader(projects, { unit, amount: amount ?? 1 });
  const seen = { used: 0, disconnected: 0, lateSleepers: 0, slotsBeyond: 0 };
  const priceAt = (nowMs: number) =>
    unit === 'cu_hours' || nowMs < PLAN_CHANGE_MS ? PRICES[unit][0] : PRICES[unit][1];
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const nowMs = START_MS + slot * SLOT_MS;
    if (amount !== undefined)
      seen.disconnected += await limitSlot(projects, leader, slot, { nowMs, dataUntilMs, lateMs });
    if (isDue(leader.knownCrossingMs(), nowMs)) seen.lateSleepers += projects.filter(mustBeLimited).length;
    const most = sum(projects.map(({ compute }) => (isLimited(compute) ? LIMIT.maxCu : compute.maxCu) * SLOT_SECONDS));
    const ofSlot = useTogether(projects, slot);
    if (ofSlot > most + 1e-6) seen.slotsBeyond += 1;
    if (nowMs >= FROM_MS) seen.used += (ofSlot / 3600) * priceAt(nowMs);
  }
  return {
    ...{ ...seen, changes: projects.map(({ changes }) => changes), spans: leader.policies().budgetSteps },
    knownCrossingMs: leader.knownCrossingMs(),
    takenForPeople: projects.filter(({ record: { manual, reversals } }) => (manual ?? reversals) !== undefined).length,
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

function isDue(crossingMs: number | undefined, nowMs: number): boolean {
  return crossingMs !== undefined && nowMs > crossingMs + SLOT_MS;
}

function mustBeLimited({ compute }: Project): boolean {
  return compute.state === 'idle' && !isLimited(compute);
}

function isLimited({ maxCu, suspendTimeoutSeconds }: Compute): boolean {
  return maxCu <= LIMIT.maxCu && suspendTimeoutSeconds <= LIMIT.seconds;
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
  let policies = compiled(aBudget({ month, steps: STEPS, includeProtected: false }));
  let crossingMs: number | undefined;
  const documents = memoryDocumentStore();
  const kept = usageAccount(memoryUsageStore(), ORGANIZATION);
  const about = { hourMs: 0, dayMs: 0, months: [], gone: [], quantities: [], trials: [] };
  const launch: [number, string][] = [START_MS, FROM_MS].map((ms) => [ms, 'launch']);
  await kept.putAbout({ ...about, plans: [...launch, [PLAN_CHANGE_MS, 'scale']] });
  return {
    policies: () => policies,
    knownCrossingMs: () => crossingMs,
    async collect(arriving: Arriving) {
      for (const project of projects) {
        project.usage = mergeUsage(project.usage, { buckets: arrived(project, arriving) }).usage;
      }
      await kept.put(projects.map(({ usage }) => usage));
    },
    async decide(nowMs: number) {
      const budgets = await openBudgets(documents);
      const { states } = await advanceBudgets({
        ...{ policies, costs: { ...NO_COSTS, plans: new Map() }, before: budgets.value ?? [], releases: [], nowMs },
        ...{ organizations: [{ ...ORGANIZATION, projectIds: [], kept }], computes: [] },
        projects: projects.map(({ projectId }) => ({ ...LISTED, projectId, name: projectId })),
      });
      await budgets.replace(states);
      const [state] = states;
      if (state && (state.spent ?? 0) >= state.month.amount) crossingMs ??= nowMs;
      policies = withBudgetSteps(policies, spansOf(states));
    },
  };
}

/** Writes what is planned, and gives how many changes disconnected clients. Between two hours only sleep and waking make a new plan. */
function apply(project: Project, policies: CompiledPolicies, slot: number): number {
  const { compute } = project;
  if (slot % 4 !== 0 && compute.state === project.stateBefore) return 0;
  project.stateBefore = compute.state;
  const nowMs = START_MS + slot * SLOT_MS;
  const record = updatedRecord(project.record, compute, { policies, nowMs, enforcedSinceMs: 0 });
  const { plan } = evaluateNow({ policies, compute, record, nowMs, mode: 'enforce', projectBusy: false });
  project.record = record;
  if (plan.verdict !== 'act') return 0;
  const fields = Object.assign({}, ...plan.actions.map((action) => action.fields));
  project.changes += FIELD_GROUPS.filter((group) => fieldsOf(group, fields)).length;
  project.compute = { ...compute, ...fields };
  project.record = { ...record, lastApplied: { ...record.lastApplied, ...fields } };
  return plan.actions.filter(({ disconnects }) => disconnects).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
