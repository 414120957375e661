/** A replay of the past says what a live daemon has said: the same findings, in the same rounds. */
import { describe, expect, it } from 'vitest';
import { auditOfWrite } from '../../src/app/apply/audit.ts';
import { recordAfter, type WriteAnswer } from '../../src/app/apply/record-update.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { readPastEntries } from '../../src/app/guards/past-entries.ts';
import { createRecordedSeries } from '../../src/app/guards/recorded-series.ts';
import { type ReplayedLowering, replayGuard } from '../../src/app/guards/replay.ts';
import { createGuardVerdicts, type GuardRoundsDeps, startGuardRounds } from '../../src/app/guards/verdicts.ts';
import { listAudit } from '../../src/app/operator/audit.ts';
import { decisionDocument } from '../../src/app/operator/documents.ts';
import type { OperatorParts } from '../../src/app/operator/parts.ts';
import { replayRows, sumsOf } from '../../src/cli/guard/replay-report.ts';
import { awakeHistory } from '../../src/domain/awake/intervals.ts';
import { createOperationLog } from '../../src/domain/awake/operation-log.ts';
import { type Compute, type ComputeSettings, settingsOf } from '../../src/domain/compute/compute.ts';
import type { Series } from '../../src/domain/guards/verdict.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { GuardPolicy } from '../../src/domain/policy/kinds/guard.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { withFailure } from '../../src/domain/records/failures.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import { pastLowerings } from '../../src/domain/records/past-lowerings.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import type { SeriesSource, SeriesSources } from '../../src/ports/guards.ts';
import type { Store } from '../../src/ports/store.ts';
import { aCompute, aGuard, aHold, aRecord, aSchedule, currentRules } from '../support/builders.ts';
import { FROM, type GuardedPast, guardedPast, type PastChange, ROUND_MS, TO } from '../support/guarded-past.ts';
import { memoryLog } from '../support/memory-log.ts';
import type { SteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const SOURCE = { name: 'main', file: 'ebb.yaml', from: 'prometheus', url: 'http://unused', everyMs: 30_000 } as const;
const HOUR_MS = 3_600_000;
const match = { id: '{compute_id}' };
const GUARDS = {
  absolute: aGuard({ match, badWhen: { side: 'above', limit: 0.4, relative: false } }),
  relative: aGuard({ match, badWhen: { side: 'above', limit: 1.5, relative: true }, watchMs: 900_000 }),
};

const UNCHANGED = aRecord({ lastApplied: {} });

/** A source at an instant; `nowMs` for the latest values. */
function sourcesOf(past: GuardedPast, time: { ms: number }): SeriesSources {
  const seriesOf = (instants: readonly number[]): Series[] =>
    past.computes.flatMap(({ computeId }) => {
      const values = instants.map((atMs) => ({ atMs, values: past.valuesAt(computeId, atMs) }));
      return [0, 1].flatMap((index) => {
        const samples = values.flatMap(({ atMs, values: { [index]: value } }) =>
          value === undefined ? [] : [{ atMs, value }],
        );
        return samples.length > 0 ? [{ labels: { id: computeId, le: String(index) }, samples }] : [];
      });
    });
  const source: SeriesSource = {
    latest: async () => ({ ok: true, value: seriesOf([time.ms]) }),
    async range(_query, { fromMs, toMs, stepMs }) {
      const count = Math.floor((toMs - fromMs) / stepMs) + 1;
      return { ok: true, value: seriesOf(Array.from({ length: count }, (_, index) => fromMs + index * stepMs)) };
    },
  };
  return { of: () => source, close: async () => {} };
}

/** Lives through a past with the daemon's own rounds, and is started again now and then. */
async function live(past: GuardedPast, guard: GuardPolicy, restartEvery: number) {
  const time = { ms: FROM };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms } as SteppedClock;
  const store = createMemoryStore(clock);
  const fleet = createFleet({ clock });
  const rules = currentRules(aSchedule(), guard);
  const sources = new Map([['main', SOURCE]]);
  rules.current.policies = compilePolicies({ policies: [aSchedule(), guard], sources, hash: 'test' });
  const log = memoryLog();
  const said: string[] = [];
  const metrics = {
    ...{ set: () => {}, clear: () => {} },
    increment(name: string, { outcome = '' }: Record<string, string>) {
      if (name === 'ebb_guard_watches_total') said.push(`${isoInstant(time.ms)} ${outcome}`);
    },
  };
  let tick = async () => {};
  const deps = {
    ...{ fleet, rules, store, mode: 'enforce', holder: 'test', telemetry: { log, metrics } },
    ...{ series: sourcesOf(past, time), guards: createGuardVerdicts(), rhythm: { guardsMs: ROUND_MS } },
    ...{ leaderLease: { isHeld: () => true }, storeWatch: { onLoss: () => {} } },
    mayWrite: async () => ({ ok: true }),
    queue: { add: async () => {} },
    runInBackground: async (_task: string, round: () => Promise<void>) => round(),
    clock: {
      ...clock,
      timeout: () => new AbortController().signal,
      every(_ms: number, round: () => Promise<void>) {
        tick = round;
        return { close: async () => {} };
      },
    },
  } as unknown as GuardRoundsDeps;
  let rounds = startGuardRounds(deps);
  const changes = changing(past, store, deps);
  for (let atMs = FROM, round = 0; atMs <= TO; atMs += ROUND_MS, round += 1) {
    await changes.until(atMs, time);
    time.ms = atMs;
    const computes = past.computes.map((one) => changes.now(one, atMs));
    fleet.cache({ project: { projectId: 'p-one' }, computes, unreadable: [], readAtMs: atMs } as never);
    const records = await store.records('p-one');
    for (const compute of computes) {
      const holds = changes.held.has(compute.computeId) ? [aHold()] : [];
      const record = records.get(compute.computeId) ?? UNCHANGED;
      fleet.putEvaluated({ compute, record, decision: { trace: [], holds } } as never);
    }
    if (round % restartEvery === 0) {
      await rounds.close();
      rounds = startGuardRounds(deps);
    }
    await tick();
  }
  const entries = await readPastEntries(operatorOn(store), FROM);
  if (!entries.ok) throw new Error(entries.error.message);
  const told = log.lines.flatMap(({ fields }) => {
    const { event = '', compute, lowered_at = '' } = fields as Record<string, string>;
    return /guard_(no_samples|common_cause)/.test(event) ? [`${event.slice(10)} ${compute} ${lowered_at}`] : [];
  });
  const harms = (await store.history({ limit: 10_000 })).flatMap(({ kind, computeId, atMs, reasons }) =>
    kind === 'guard' ? [`${isoInstant(atMs)} ${computeId} ${reasons[0]?.message}`] : [],
  );
  return { said: said.toSorted(), told: told.toSorted(), harms: harms.toSorted(), entries: entries.value.entries };
}

function operatorOn(store: Store): Parameters<typeof readPastEntries>[0] {
  return {
    audit: (query) => listAudit({ store } as OperatorParts, query),
    async decisions({ compute = '', limit }) {
      const entries = await store.history({ computeId: compute, limit });
      return { ok: true, value: entries.map(decisionDocument) };
    },
  };
}

type FieldChange = Extract<PastChange, { fields: object }>;

/** Makes the changes of a past as a daemon and people make them: in the records, and in audit and history. */
function changing(past: GuardedPast, store: Store, deps: GuardRoundsDeps) {
  const settings = new Map<string, ComputeSettings>(past.computes.map((one) => [one.computeId, settingsOf(one)]));
  const held = new Set<string>();
  const left = [...past.changes];
  const place = ({ projectId, computeId }: Compute) => ({ projectId, computeId, setHash: 'test' });
  const now = (compute: Compute, atMs: number): Compute => {
    const { startedAtMs: _, ...rest } = compute;
    return { ...rest, ...settings.get(compute.computeId), ...past.stateAt(compute.computeId, atMs) };
  };

  const recordOf = async ({ projectId, computeId }: Compute) =>
    (await store.records(projectId)).get(computeId) ?? UNCHANGED;

  async function write({ projectId, computeId }: Compute, record: ComputeRecord, audit?: HistoryEntry): Promise<void> {
    const lease = await store.acquireLease(`project-${projectId}`, 'test', 1_000);
    if (!lease) throw new Error('no lease');
    await store.putRecord(projectId, computeId, record, lease, audit && { audit });
    await store.releaseLease(lease);
  }

  async function send(compute: Compute, { atMs, kind, fields, policy }: FieldChange): Promise<void> {
    const action = { kind: 'update', fields, disconnects: false, raises: false, policy, priority: 0 } as const;
    const intent = { fields, before: settingsOf(compute), atMs, policy };
    const error = { code: 'invalid', message: 'no', route: '', status: 422 } as never;
    const answer: WriteAnswer = kind === 'refused' ? { ok: false, error } : { ok: true, value: { operations: [] } };
    const after = recordAfter({ ...(await recordOf(compute)), intent }, action, answer, atMs);
    const evaluatedCompute = { compute, plan: { why: [{ code: 'window_open', message: 'open' }] } } as never;
    const outcome = answer.ok ? 'applied' : 'refused';
    const sent = {
      evaluatedCompute,
      action,
      outcome,
      error: answer.ok ? undefined : error,
      requestId: 'r',
      atMs,
    } as const;
    if (answer.ok) settings.set(compute.computeId, { ...compute, ...fields });
    await write(compute, { ...after, setBy: { size: policy, suspend_timeout: policy } }, auditOfWrite(deps, sent));
  }

  async function make(change: PastChange): Promise<void> {
    const { atMs, kind } = change;
    const compute = now(change.compute, atMs);
    const note = (entry: Pick<HistoryEntry, 'kind' | 'to'>, code: string) =>
      store.appendHistory([{ ...place(compute), ...entry, atMs, reasons: [{ code, message: 'a test' }] }]);
    if (!('fields' in change)) {
      kind === 'held' ? held.add(compute.computeId) : held.delete(compute.computeId);
      return note({ kind: 'hold' }, kind === 'held' ? 'hold' : 'released');
    }
    const { fields } = change;
    if (kind === 'applied' || kind === 'refused') return send(compute, change);
    const before = await recordOf(compute);
    if (kind === 'manual') {
      settings.set(compute.computeId, { ...compute, ...fields });
      await write(compute, { ...before, manual: { size: { fields, seenAtMs: atMs, raises: false } } });
      return note({ kind: 'manual', to: fields }, 'manual_change');
    }
    await write(compute, withFailure(before, { desired: fields, message: 'no', atMs, isPermanent: false }));
    return note({ kind: 'operation' }, 'operation_failed');
  }

  return {
    ...{ now, held },
    async until(atMs: number, time: { ms: number }) {
      while (left[0] && left[0].atMs <= atMs) {
        const change = left.shift() as PastChange;
        time.ms = change.atMs;
        await make(change);
      }
    },
  };
}

async function replayed(past: GuardedPast, guard: GuardPolicy, entries: Awaited<ReturnType<typeof live>>['entries']) {
  const log = createOperationLog();
  for (const row of past.operations) log.project(row.projectId).add(row);
  const computes = past.computes.map((compute) => {
    const history = awakeHistory(log.project('p-one').eventsOf(compute.computeId), {
      fromMs: FROM - HOUR_MS,
      toMs: TO,
    });
    return { compute, history, lowerings: pastLowerings(entries.get(compute.computeId) ?? [], guard.name) };
  });
  const asked: number[] = [];
  const sources = sourcesOf(past, { ms: Number.NaN });
  const counted: SeriesSources = {
    ...sources,
    of: (source) => ({
      ...sources.of(source),
      range(query, range, signal) {
        asked.push(range.stepMs);
        return sources.of(source).range(query, range, signal);
      },
    }),
  };
  const replay = await replayGuard({
    ...{ guard, source: SOURCE, series: createRecordedSeries(counted), computes, fromMs: FROM, toMs: TO },
    policies: new Set(['office-hours']),
    ...{ selects: () => true, signal: new AbortController().signal, clock: { nextTurn: async () => {} } },
  });
  if (!replay.ok) throw new Error(replay.error.message);
  return { ...inWords(replay.lowerings), lowerings: replay.lowerings, asked };
}

function inWords(lowerings: readonly ReplayedLowering[]) {
  const events = lowerings.flatMap(({ events: own }) => own);
  return {
    said: events.map(({ atMs, outcome }) => `${isoInstant(atMs)} ${outcome}`).toSorted(),
    told: events
      .filter(({ outcome }) => outcome === 'common_cause' || outcome === 'no_samples')
      .map(({ outcome, computeId, loweredAtMs }) => `${outcome} ${computeId} ${isoInstant(loweredAtMs)}`)
      .toSorted(),
    harms: events
      .filter(({ outcome }) => outcome === 'harm')
      .map(({ atMs, computeId, badSinceMs = 0 }) => [isoInstant(atMs), computeId, isoInstant(badSinceMs)] as const)
      .toSorted(),
  };
}

/** EBB_PROPERTY_RUNS=50 for a long run. */
const RUNS = Number(process.env.EBB_PROPERTY_RUNS ?? 3);

describe.each(Object.entries(GUARDS))('with a limit that is %s', (_name, guard) => {
  it('event for event what the live guard has said, whatever it saw', async () => {
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const past = guardedPast(seed);
      const before = await live(past, guard, 100 + seed);
      const after = await replayed(past, guard, before.entries);
      expect({ seed, said: after.said, told: after.told }).toEqual({ seed, said: before.said, told: before.told });
      expect(after.harms.length).toBe(before.harms.length);
      for (const [index, [atIso, compute, badSince]] of after.harms.entries()) {
        const text = `${atIso} ${compute} ${compute}: guard latency is bad since ${badSince}`;
        expect(before.harms[index]?.slice(0, text.length)).toBe(text);
      }
      for (const { events } of after.lowerings)
        for (const { outcome } of events) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
    }
    process.stdout.write(`seeds 1 to ${RUNS}: ${JSON.stringify(Object.fromEntries(seen))}\n`);
    expect(seen.get('harm')).toBeGreaterThan(0);
    expect(seen.get('healthy')).toBeGreaterThan(0);
    expect(seen.get('common_cause')).toBeGreaterThan(0);
  });
});

describe('what was taken back', () => {
  const MINUTE_MS = 60_000;
  const LARGE = { minCu: 1, maxCu: 4 };
  const SMALL = { minCu: 0.25, maxCu: 1 };
  /** Bad for ten minutes from three minutes after each lowering; computes are lowered at hours of the replay. */
  async function rowsOf(guard: GuardPolicy, policy = 'office-hours', again: Partial<ComputeSettings> = SMALL) {
    const compute = aCompute({ computeId: 'ep-one', ...SMALL });
    const lowered = [FROM + HOUR_MS, FROM + 3 * HOUR_MS];
    const write = (atMs: number, from: object, to: object) =>
      ({ kind: 'write', policy, reasons: [{ code: 'applied', message: '' }], atMs, from, to }) as const;
    const entries = [
      write(FROM + HOUR_MS, LARGE, SMALL),
      write(FROM + 2 * HOUR_MS, SMALL, LARGE),
      write(FROM + 3 * HOUR_MS, LARGE, again),
    ];
    const isBad = (atMs: number) => lowered.some((ms) => atMs > ms + 3 * MINUTE_MS && atMs < ms + 13 * MINUTE_MS);
    const past = { computes: [compute], valuesAt: (_id: string, atMs: number) => [isBad(atMs) ? 1 : 0.1] };
    const history = awakeHistory([], { fromMs: TO, toMs: TO });
    const replay = await replayGuard({
      ...{ guard, source: SOURCE, series: createRecordedSeries(sourcesOf(past as never, { ms: FROM })) },
      computes: [{ compute, history, lowerings: pastLowerings(entries, guard.name) }],
      ...{ fromMs: FROM, toMs: TO, policies: new Set(['office-hours']), selects: () => true },
      ...{ signal: new AbortController().signal, clock: { nextTurn: async () => {} } },
    });
    if (!replay.ok) throw new Error(replay.error.message);
    return { ...replay, ownMs: FROM, anyMs: FROM, connections: new Map() };
  }
  const undo = aGuard({ ...GUARDS.absolute, remedy: 'undo' });
  const said = async (...args: Parameters<typeof rowsOf>) =>
    replayRows(args[0], await rowsOf(...args)).map(({ outcome, remedy }) => `${outcome} ${remedy ?? ''}`.trim());

  it('is not tried again below the floor, until retry is over', async () => {
    expect(await said(undo)).toEqual(['harm undone_asleep', 'not_tried_again']);
    expect(await said(aGuard({ ...undo, retryMs: HOUR_MS }))).toEqual(['harm undone_asleep', 'harm undone_asleep']);
    expect(await said(GUARDS.absolute)).toEqual(['harm notified', 'harm notified']);
  });

  it('is only what policies of the set lowered', async () => {
    expect(await said(undo, 'gone')).toEqual(['harm notified', 'harm notified']);
  });

  it('leaves a lowering before the data unknown: neither held back nor a harm', async () => {
    const rows = replayRows(undo, { ...(await rowsOf(undo)), ownMs: TO, anyMs: TO });
    expect(sumsOf(rows)).toMatchObject({ lowerings: 2, harm: 0, undone: 0, held_back: 0, not_known: 2 });
  });
});
