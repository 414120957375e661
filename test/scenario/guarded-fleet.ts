/**
 * A fleet on virtual time under guards: the daemon's own rounds, watches and engine, a real Prometheus with the emulator's response times,
 * and writes that take effect in the next step. What is taken back is faster again, since the response times follow from the size.
 */

import { createPrometheusSeries } from '../../src/adapters/connections/prometheus-series.ts';
import { auditOfWrite } from '../../src/app/apply/audit.ts';
import { recordAfter } from '../../src/app/apply/record-update.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createGuardVerdicts, type GuardRoundsDeps, startGuardRounds } from '../../src/app/guards/verdicts.ts';
import type { OperationRow } from '../../src/domain/awake/operation-log.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { type EvaluatedCompute, evaluateNow, type Situation } from '../../src/domain/evaluate/evaluate.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import { loweringOf } from '../../src/domain/records/lowerings.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import { createLatencySeries } from '../../src/emulator/world/latency.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { SeriesSource } from '../../src/ports/guards.ts';
import { aCompute, aRecord, currentRules } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import type { SteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import { startPushedPrometheus } from './pushed-prometheus.ts';
import { createScraper } from './scraper.ts';

const STEP_MS = 30_000;
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** How long a restart takes. */
const RESTART_MS = 5_000;
/** What a round of guards leads to is answered so long after it. */
const ANSWER_MS = 1_000;
/** Before a boundary guards are asked for so long, as they are at any time; then what was bad before it is known. */
const LEAD_MS = 10 * MINUTE_MS;
/** Prometheus accepts samples that are at most so much older than its newest. */
const LONGEST_BATCH_MS = 20 * MINUTE_MS;

export interface MemberOptions {
  name: string;
  settings: Pick<Compute, 'minCu' | 'maxCu' | 'suspendTimeoutSeconds'>;
  /** What its clients need, in CU; 0: there are none, and it may fall asleep. */
  demandAt(ms: number): number;
  refillMs?: number;
}

export interface Member {
  options: MemberOptions;
  compute: Compute;
  record: ComputeRecord;
  startedAtMs: number;
  busyAtMs: number;
  /** Set while it waits: until when, and whether for a guard. */
  waits?: { untilMs: number; forGuard: boolean };
  /** Awake since its last lowering, in milliseconds. */
  awakeMs: number;
}

/** A write that took effect. */
export interface Written {
  atMs: number;
  member: Member;
  action: Action;
  /** It is wanted by a floor of a guard. */
  isUndo: boolean;
}

export interface FleetOptions {
  seed: number;
  startMs: number;
  members: readonly MemberOptions[];
  /** The minutes of a day, in UTC, at which policies may change anything. */
  boundaries: readonly number[];
  /** Those at which anything may be lowered. */
  evenings: readonly number[];
  /** Spans of a day, in minutes, that are left out unless a guard must be asked: nobody asks for what was measured then. */
  leftOut: readonly (readonly [from: number, to: number])[];
  /** Whether a compute is scraped on a day; all are if absent. */
  isScraped?: (name: string, dayMs: number) => boolean;
  /** The longest watch of all guards. */
  watchMs: number;
  /** The series that are kept: all of a histogram, or sum and count. */
  keeps: 'histogram' | 'mean';
  scrapeMs: number;
  /** False: only relative guards need more than the last minutes. */
  keepsPast: boolean;
}

/** The name of a source that guards ask. */
export const SOURCE = 'main';

const MAX_ATTEMPTS = 5;

/** Asks again what Prometheus does not answer on a busy machine: the scenario makes its own outages, and a replay can't know of others. */
function patient(source: SeriesSource): SeriesSource {
  return {
    ...source,
    async latest(query, signal) {
      let answer = await source.latest(query, signal);
      for (let attempt = 1; !answer.ok && attempt < MAX_ATTEMPTS; attempt += 1)
        answer = await source.latest(query, signal);
      return answer;
    },
  };
}

export async function startGuardedFleet(options: FleetOptions) {
  let nowMs = options.startMs;
  const clock = {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    timeout: () => new AbortController().signal,
    every: (_intervalMs: number, tick: () => Promise<void>) => {
      round = tick;
      return { close: async () => {} };
    },
  } as unknown as Clock & SteppedClock;
  let round = async () => {};
  const prometheus = await startPushedPrometheus(() => nowMs);
  const adapter = createPrometheusSeries({ url: prometheus.url, timeoutMs: 60_000 });
  const latency = createLatencySeries(options.seed);
  const scraper = createScraper(options, latency);
  const store = createMemoryStore(clock);
  const fleet = createFleet({ clock });
  const rules = currentRules();
  const guards = createGuardVerdicts();
  const members = new Map(options.members.map((one) => [`p-${one.name}`, memberOf(one, options.startMs)]));
  const due = new Set<Member>(members.values());
  const asked: string[] = [];
  const log = memoryLog();
  const counted = new Map<string, number>();
  // What a replay reads: the audit, the operations; and what it has to say.
  const audit: HistoryEntry[] = [];
  const operations: OperationRow[] = [];
  const said: string[] = [];
  const rounds = startGuardRounds({
    ...{ clock, fleet, rules, store, guards, mode: 'enforce', holder: 'test', rhythm: { guardsMs: STEP_MS } },
    telemetry: {
      log,
      metrics: {
        ...{ set: () => {}, clear: () => {}, observe: () => {} },
        increment: (name: string, labels: Record<string, string>) => {
          const key = [name, ...Object.values(labels)].join(' ');
          counted.set(key, (counted.get(key) ?? 0) + 1);
          const { guard, outcome } = labels;
          if (name === 'ebb_guard_watches_total') said.push(`${isoInstant(nowMs)} ${guard} ${outcome}`);
        },
      },
    },
    series: { of: () => patient(adapter), close: () => adapter.close() },
    runInBackground: async (_task: string, task: () => Promise<void>) => task(),
    evaluate: (of: Pick<Situation, 'compute' | 'record' | 'projectBusy'>) => ({
      ...of,
      ...evaluateNow({ ...of, policies: rules.current.policies, nowMs, mode: 'enforce' }),
    }),
    ...{ leaderLease: { isHeld: () => true }, storeWatch: { onLoss: () => {} } },
    mayWrite: async () => ({ ok: true }),
    queue: { add: async (_name: string, { key }: { key: string }) => void asked.push(key) },
  } as unknown as GuardRoundsDeps);

  async function reconcile(member: Member, answeredAtMs: number): Promise<Written[]> {
    const { projectId, computeId } = member.compute;
    const { policies } = rules.current;
    // A harm is stored in the record by the guard's own code.
    const stored = (await store.records(projectId)).get(computeId) ?? member.record;
    const record = updatedRecord(stored, member.compute, { policies, nowMs, enforcedSinceMs: 0 });
    const evaluated = evaluateNow({
      ...{ policies, compute: member.compute, record, nowMs, mode: 'enforce', projectBusy: false },
      verdictOf: (guard) => guards.of(guard, computeId, nowMs),
    });
    const { plan, decision } = evaluated;
    member.record = { ...record, setBy: decision.setBy };
    delete member.waits;
    if (plan.verdict === 'wait') {
      const forGuard = plan.why.some(({ code }) => code === 'guard');
      member.waits = { untilMs: plan.untilMs ?? Number.POSITIVE_INFINITY, forGuard };
    }
    const isUndo = decision.trace.some(({ code }) => code === 'guard_floor');
    const of = { compute: member.compute, record, decision, plan, nextBoundaryMs: undefined, nextChangeMs: undefined };
    const written =
      plan.verdict === 'act'
        ? plan.actions.map((action) => write(member, of, { action, isUndo, atMs: answeredAtMs }))
        : [];
    const lease = await store.acquireLease(`project-${projectId}`, 'test', 1_000);
    if (!lease) throw new Error(`somebody else has the lease of ${projectId}`);
    await store.putRecord(projectId, computeId, member.record, lease);
    await store.releaseLease(lease);
    fleet.putEvaluated({
      compute: member.compute,
      record: member.record,
      decision,
      plan,
      nextBoundaryMs: undefined,
      nextChangeMs: undefined,
    });
    return written;
  }

  function write(
    member: Member,
    evaluatedCompute: EvaluatedCompute,
    { action, isUndo, atMs }: Omit<Written, 'member'>,
  ): Written {
    const sent = {
      evaluatedCompute,
      action,
      outcome: 'applied',
      error: undefined,
      requestId: '',
      atMs,
    } as const;
    audit.push(auditOfWrite({ rules, fleet }, sent));
    const { minCu, maxCu, suspendTimeoutSeconds } = member.compute;
    const before = { minCu, maxCu, suspendTimeoutSeconds };
    const intended = { ...member.record, intent: { fields: action.fields, before, atMs } };
    const settings = { ...before, ...action.fields };
    member.record = recordAfter(intended, action, { ok: true, value: { operations: [], settings } }, atMs);
    member.compute = { ...member.compute, ...action.fields };
    if (action.disconnects) {
      member.startedAtMs = atMs + RESTART_MS;
      note(member, 'suspend_compute', atMs);
      note(member, 'start_compute', member.startedAtMs);
    }
    if (!action.raises) member.awakeMs = 0;
    show(member);
    return { atMs, member, action, isUndo };
  }

  function show({ compute, startedAtMs }: Member): void {
    const { projectId, projectName } = compute;
    fleet.cache({
      project: { projectId, projectName } as never,
      ...{ computes: [{ ...compute, startedAtMs, ...(startedAtMs > nowMs && { pendingState: 'active' as const }) }] },
      ...{ unreadable: [], readAtMs: nowMs, readAtMonotonicMs: nowMs },
    });
  }

  function note({ compute: { projectId, computeId } }: Member, action: string, createdAtMs: number): void {
    operations.push({ projectId, computeId, action, status: 'finished', createdAtMs, totalDurationMs: 0 });
  }

  function hasStarted({ startedAtMs }: Member, passedMs: number): boolean {
    return startedAtMs <= nowMs && startedAtMs > nowMs - passedMs;
  }

  /** It is awake while it has clients, and for its timeout after them. */
  function stateNow({ compute, busyAtMs }: Member): Compute['state'] {
    const quietMs = nowMs - busyAtMs;
    const mayStay = compute.suspendTimeoutSeconds < 0 || quietMs < compute.suspendTimeoutSeconds * 1000;
    return quietMs === 0 || (compute.state === 'active' && mayStay) ? 'active' : 'idle';
  }

  /** Clients come and go; a compute wakes for them, and falls asleep after them. */
  function live(member: Member, passedMs: number): void {
    const { compute, options: own } = member;
    if (own.demandAt(nowMs) > 0) member.busyAtMs = nowMs;
    if (compute.state === 'active') member.awakeMs += passedMs;
    if (hasStarted(member, passedMs)) show(member);
    const state = stateNow(member);
    if (state === compute.state) return;
    if (state === 'active') member.startedAtMs = nowMs;
    note(member, state === 'active' ? 'start_compute' : 'suspend_compute', nowMs);
    member.compute = { ...compute, state };
    show(member);
    due.add(member);
  }

  /** Guards are asked all the time; here only where the answer can make a difference. */
  function mustAsk(): boolean {
    const minute = Math.floor(((nowMs % DAY_MS) + LEAD_MS) / MINUTE_MS);
    const isNear = options.evenings.some((boundary) => minute >= boundary && minute < boundary + 15);
    // Near a boundary, what was bad before it is to be known.
    return isNear || [...members.values()].some((member) => member.waits?.forGuard || isWatched(member, nowMs));
  }

  function isWatched({ compute, record, awakeMs }: Member, atMs: number): boolean {
    if (compute.state !== 'active' || awakeMs > 2 * options.watchMs + 5 * MINUTE_MS) return false;
    return loweringOf(record, atMs - DAY_MS) !== undefined;
  }

  async function reconcileDue(answeredAtMs = nowMs): Promise<Written[]> {
    const written: Written[] = [];
    for (const member of due) written.push(...(await reconcile(member, answeredAtMs)));
    due.clear();
    return written;
  }

  for (const member of members.values()) {
    show(member);
    if (member.compute.state === 'active') note(member, 'start_compute', member.startedAtMs);
  }

  function noteDue(): void {
    const isBoundary = options.boundaries.includes((nowMs % DAY_MS) / MINUTE_MS);
    for (const member of members.values()) {
      if (isBoundary || (member.waits?.untilMs ?? Number.POSITIVE_INFINITY) <= nowMs) due.add(member);
    }
  }

  async function askGuards(): Promise<Written[]> {
    await scraper.flush(prometheus.push, nowMs, 0);
    await round();
    for (const member of members.values()) if (member.waits?.forGuard) due.add(member);
    for (const key of asked.splice(0)) due.add(members.get(key) ?? fail(key));
    return reconcileDue(nowMs + ANSWER_MS);
  }

  /** One step: clients, a scrape, the guards, and what follows. */
  async function step(passedMs: number): Promise<Written[]> {
    for (const member of members.values()) live(member, passedMs);
    if (nowMs % options.scrapeMs === 0) scraper.scrape([...members.values()], nowMs);
    noteDue();
    const written = await reconcileDue();
    if (mustAsk()) return [...written, ...(await askGuards())];
    if (options.keepsPast) await scraper.flush(prometheus.push, nowMs, LONGEST_BATCH_MS);
    else scraper.forget(nowMs - 5 * MINUTE_MS);
    return written;
  }

  /** How long the next step is. */
  function nextStepMs(): number {
    if (mustAsk()) return STEP_MS;
    const minute = (nowMs % DAY_MS) / MINUTE_MS;
    const [, toMinute] = options.leftOut.find(([from, to]) => minute >= from && minute < to) ?? [];
    return toMinute === undefined ? MINUTE_MS - (nowMs % MINUTE_MS) : (toMinute - minute) * MINUTE_MS;
  }

  return {
    ...{ members, log, counted, latency, store, rules, guards, nowMs: () => nowMs },
    ...{ adapter, audit, operations, said },
    setPolicies(policies: readonly Policy[]) {
      const source = { name: SOURCE, file: 'ebb.yaml', from: 'prometheus', url: prometheus.url, everyMs: MINUTE_MS };
      const set = { policies: [...policies], sources: new Map([[SOURCE, source as never]]), hash: `${nowMs}` };
      rules.current = { ...rules.current, policies: compilePolicies(set) };
      for (const member of members.values()) due.add(member);
    },
    /** Goes on to an instant; gives what was written. */
    async runTo(untilMs: number, onStep: (atMs: number) => void = () => {}): Promise<Written[]> {
      const written: Written[] = [];
      for (; nowMs < untilMs; ) {
        const passedMs = Math.min(nextStepMs(), untilMs - nowMs);
        nowMs += passedMs;
        for (const one of await step(passedMs)) written.push(one);
        onStep(nowMs);
      }
      return written;
    },
    async close() {
      await rounds.close();
      await adapter.close();
      await prometheus.close();
    },
  };
}

export type GuardedFleet = Awaited<ReturnType<typeof startGuardedFleet>>;

function fail(key: string): never {
  throw new Error(`there is no ${key}`);
}

function memberOf(options: MemberOptions, atMs: number): Member {
  const { name, settings } = options;
  const compute = aCompute({
    ...{ projectId: `p-${name}`, projectName: name, computeId: `ep-${name}`, branchId: `br-${name}`, ...settings },
    createdAtMs: 0,
    state: options.demandAt(atMs) > 0 || settings.suspendTimeoutSeconds < 0 ? 'active' : 'idle',
  });
  const record = aRecord({ baseline: settings, lastApplied: settings });
  return { options, compute, record, startedAtMs: atMs - DAY_MS, busyAtMs: atMs, awakeMs: 0 };
}
