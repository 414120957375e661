/**
 * Eight weeks of a fleet with a trial, in simulated time: what is written is what `forecast` named, the trial restarts nothing, and the
 * measured saving contains what a second platform without policies shows. On demand: EBB_SCENARIO=1.
 */
import { describe, expect, it } from 'vitest';
import { type Compute, sameSize } from '../../src/domain/compute/compute.ts';
import { lastBoundary } from '../../src/domain/decide/boundaries.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { complianceOf } from '../../src/domain/evaluate/trials.ts';
import { forecastFleet, type Segment } from '../../src/domain/forecast/forecast.ts';
import { gatesOf } from '../../src/domain/plan/plan.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { TrialPolicy } from '../../src/domain/policy/kinds/trial.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { armInPeriod, drawOf, periodOfDay, trialSpan } from '../../src/domain/trial/assignment.ts';
import { localDays } from '../../src/domain/trial/cells.ts';
import { savingsOf, type TrialUnit } from '../../src/domain/trial/savings.ts';
import type { UsageBucket } from '../../src/domain/usage/usage.ts';
import type { Fleet, Load } from '../../src/emulator/fleet.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { aCompute } from '../support/builders.ts';
import { makeFolder, type Platform, type RecordedRequest, startTestPlatform } from '../support/platform.ts';
import { printSeed, runsScenarios, SEED } from '../support/seed.ts';
import { type SimulatedDaemon, startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** A Friday; the trial begins on Monday. */
const FROM_MS = Date.parse('2026-01-09T00:00:00Z');
const PROJECTS = 40;
/** The control API knows 168 hours. */
const READ_DAYS = 6;

/** So long after a boundary a write needs no reason. */
const SOON_MS = 10 * MINUTE_MS;

const POLICIES = `version: 1
timezone: Europe/Berlin
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00, size: 0.5-4, suspend_after: 5m }]
    otherwise: { size: 0.25-1, suspend_after: 1m }
    disruption: { lower: { when: idle, deadline: 2h, then: apply }, at_once: 100% }
  - name: proof
    kind: trial
    select: { projects: ["web-*"], min_age: 1m }
    of: [office-hours]
    control: 25%
    from: 2026-01-12
    until: 2026-03-09
    seed: a
`;

/** Demand by classes; sizes log-normal. */
function fleet(): Fleet {
  const random = seededRandom(SEED);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const classes: ((cu: number) => Load[])[] = [
    (cu) => [{ class: 'office_users', cu, utcOffsetHours: 1 }],
    (cu) => [{ class: 'bursty_api', cu: cu / 4, utcOffsetHours: 1 }],
    (cu) => [
      { class: 'cron_ping', everySeconds: 1800, cu: 0 },
      { class: 'night_batch', cu, utcOffsetHours: 1 },
    ],
    (cu) => [
      { class: 'office_users', cu, utcOffsetHours: 1 },
      { class: 'idle_in_transaction', hours: 4, utcOffsetHours: 1 },
    ],
    () => [{ class: 'queue_poller', everySeconds: 120, cu: 0 }],
  ];
  const projects = Array.from({ length: PROJECTS }, (_, index) => ({
    ...{ id: `web-${index}`, name: `web-${index}`, account: 'acme', regionId: 'aws-eu-central-1', pgVersion: 17 },
    computes: [
      {
        ...{ id: `ep-web-${index}`, branchId: `br-web-${index}`, branch: { name: 'main', default: true } },
        ...{ type: 'read_write' as const, state: 'idle' as const, connections: 0 },
        ...{ minCu: 0.5, maxCu: 4, suspendTimeoutSeconds: 1800 },
        load: classes[index % classes.length]?.(Math.min(4, Math.exp(0.6 * normal()))) ?? [],
      },
    ],
  }));
  return { projects };
}

interface Quarters {
  branches: { project_id: string; quarters: { start: string; cu_seconds: number }[] }[];
  computes: { compute_id: string; awake: unknown[] }[];
}

/** What was really used, in hours, by project. */
async function truthOf({ origin }: Pick<Platform, 'origin'>): Promise<Map<string, UsageBucket[]>> {
  const { branches } = (await (await fetch(`${origin}/_emulator/state/usage`)).json()) as Quarters;
  return new Map(
    branches.map(({ project_id, quarters }) => {
      const hours = new Map<number, number>();
      for (const { start, cu_seconds } of quarters) {
        const startMs = Math.floor(Date.parse(start) / HOUR_MS) * HOUR_MS;
        hours.set(startMs, (hours.get(startMs) ?? 0) + cu_seconds);
      }
      return [project_id, [...hours].map(([startMs, cuSeconds]) => ({ startMs, seconds: 3600, cuSeconds }))];
    }),
  );
}

interface Pages {
  projects: {
    project_id: string;
    periods: { consumption: { timeframe_start: string; metrics: { value: number }[] }[] }[];
  }[];
}

/** The hours of some days as the route for usage shows them; those without any are zero. */
async function readHours({ url, apiKey }: Platform, toMs: number, into: Map<string, UsageBucket[]>): Promise<void> {
  const fromMs = toMs - READ_DAYS * DAY_MS;
  const query = new URLSearchParams({
    ...{ org_id: 'org-acme', granularity: 'hourly', metrics: 'compute_unit_seconds', limit: '100' },
    ...{ from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() },
  });
  const answer = await fetch(`${url}/consumption_history/v2/projects?${query}`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  expect(answer.status).toBe(200);
  for (const { project_id, periods } of ((await answer.json()) as Pages).projects) {
    const used = new Map(
      periods.flatMap(({ consumption }) =>
        consumption.map((one) => [Date.parse(one.timeframe_start), one.metrics[0]?.value ?? 0] as const),
      ),
    );
    const known = into.get(project_id) ?? [];
    into.set(project_id, known);
    for (let startMs = fromMs; startMs < toMs; startMs += HOUR_MS) {
      known.push({ startMs, seconds: 3600, cuSeconds: used.get(startMs) ?? 0 });
    }
  }
}

describe('eight weeks with a trial', () => {
  it.runIf(runsScenarios)(
    'write what was foreseen, restart nothing for the trial, and measure what was really saved',
    async (test) => {
      printSeed();
      const folder = await makeFolder({ 'policy.yaml': POLICIES });
      test.onTestFinished(() => folder.remove());
      const loaded = await loadPolicySet({ paths: [`${folder.path}/policy.yaml`], settings: DEFAULT_POLICY_SETTINGS });
      if (!loaded.ok) throw new Error(JSON.stringify(loaded));
      const policies = compilePolicies(loaded.set);
      const trial = loaded.set.policies.find((policy): policy is TrialPolicy => policy.kind === 'trial');
      if (!trial) throw new Error('no trial');
      const { untilMs } = trialSpan(trial.design);

      const platform = { fleet: fleet(), seed: SEED };
      const daemon = await startSimulatedDaemon({ fromMs: FROM_MS, computes: {}, policies: POLICIES, platform });
      test.onTestFinished(() => daemon.close());
      const measured = new Map<string, UsageBucket[]>();
      const writes: RecordedRequest[] = [];
      for (let toMs = FROM_MS + READ_DAYS * DAY_MS; toMs <= FROM_MS + 60 * DAY_MS; toMs += READ_DAYS * DAY_MS) {
        const fromMs = daemon.clock.now();
        await daemon.clock.runTo(toMs + 3 * HOUR_MS);
        await readHours(daemon.platform, toMs, measured);
        // The emulator keeps a part of its record.
        writes.push(...(await daemon.platform.writes()).filter(({ at }) => Date.parse(at) >= fromMs));
      }

      const { late, unforeseen, byTrial } = judgeWrites(daemon, { writes, policies, untilMs });
      const held = daemon.events.flatMap(({ event }) => (event.kind === 'held_back' ? gatesOf(event.plan) : []));
      const records = await recordsOf(daemon);
      const kept = records.flatMap(({ trials }) => trials?.[trial.name]?.kept ?? []);
      const compliance = complianceOf(trial.design, kept, untilMs);

      const without = await withoutPolicies(platform, daemon.clock.now());
      const used = await truthOf(daemon.platform);
      const truth = trueSaving(trial, used, without);
      const saved = savingsOf({ design: trial.design, units: unitsOf(trial, measured), usedUntilMs: untilMs });
      const percent = (share: number | null | undefined) => `${((share ?? Number.NaN) * 100).toFixed(1)} %`;
      const { low, mid, high } = saved.relative ?? { low: Number.NaN, mid: Number.NaN, high: Number.NaN };
      process.stdout.write(
        [
          `writes ${writes.length}, late with a gate's reason ${late}, flips held back ${held.filter((gate) => gate === 'trial_flip').length}`,
          `compliance: ${percent(compliance.treated)} with the policies, ${percent(compliance.control)} without`,
          `truth: ${percent(truth)}; measured: ${percent(mid)} (${percent(low)} to ${percent(high)}), ${saved.units} units, as good as ${saved.effectiveUnits.toFixed(1)}`,
          '',
        ].join('\n'),
      );
      expect(unforeseen).toEqual([]);
      expect(byTrial).toEqual([]);
      expect(daemon.events.filter(({ event }) => event.kind === 'manual_change')).toEqual([]);
      expect(held).not.toContain('fight_stopped');
      expect(records.flatMap(({ reversals, manual }) => [reversals, manual]).filter(Boolean)).toEqual([]);
      expect(saved.state).toBe('complete');
      expect(low).toBeLessThanOrEqual(truth);
      expect(high).toBeGreaterThanOrEqual(truth);
    },
    1_800_000,
  );
});

/** The same clients at the same instants, of a platform that nobody touches. */
async function withoutPolicies(options: { fleet: Fleet; seed: number }, untilMs: number) {
  const now = { ms: FROM_MS };
  const clock = { now: () => now.ms, realDelayMs: (ms: number) => Math.max(0, ms - now.ms) };
  const untouched = await startTestPlatform({}, { ...options, clock, operationTimeMs: 2_000, availabilityCheckMs: 0 });
  try {
    now.ms = untilMs;
    return await truthOf(untouched);
  } finally {
    await untouched.close();
  }
}

function unitsOf({ design }: TrialPolicy, hours: ReadonlyMap<string, UsageBucket[]>): TrialUnit[] {
  const days = { zone: design.zone, fromDay: design.fromDay, untilDay: design.fromDay + 56 };
  return [...hours].map(([unit, buckets]) => ({
    ...{ unit, owner: 'all', draw: drawOf(design, unit), usage: localDays(buckets, days) },
  }));
}

/** Over the unit-days that count: 1 − used / what would have been used. */
function trueSaving(
  { design }: TrialPolicy,
  used: ReadonlyMap<string, UsageBucket[]>,
  without: ReadonlyMap<string, UsageBucket[]>,
): number {
  const sums = { used: 0, without: 0 };
  const dayOf = (ms: number) => Math.floor((ms + HOUR_MS) / DAY_MS);
  for (const unit of without.keys()) {
    const { slot } = drawOf(design, unit);
    const counts = ({ startMs }: UsageBucket) => {
      const period = periodOfDay(design, dayOf(startMs));
      const isFirst = (dayOf(startMs) - design.fromDay) % design.rotateDays === 0;
      return period !== undefined && !isFirst && armInPeriod(design, slot, period) === 'treated';
    };
    for (const [name, hours] of [
      ['used', used],
      ['without', without],
    ] as const) {
      for (const hour of hours.get(unit) ?? []) if (counts(hour)) sums[name] += hour.cuSeconds ?? 0;
    }
  }
  return 1 - sums.used / sums.without;
}

async function recordsOf({ operator }: SimulatedDaemon) {
  const read = await operator.records({ limit: 1000 });
  if (!read.ok) throw new Error(read.error.message);
  return read.value.items.flatMap(({ records }) => Object.values(records));
}

interface Judging {
  writes: readonly RecordedRequest[];
  policies: ReturnType<typeof compilePolicies>;
  untilMs: number;
}

/**
 * What was written: unforeseen, late, and disconnecting although without the trial it would not have been written then. Without it a
 * boundary that changes the size restarts a compute once, and nothing that the trial does delays that.
 */
function judgeWrites(daemon: SimulatedDaemon, { writes, policies, untilMs }: Judging) {
  const without = compilePolicies({
    ...policies.set,
    policies: policies.set.policies.filter(({ kind }) => kind !== 'trial'),
  });
  const restarted = new Set<string>();
  const names = Array.from({ length: PROJECTS }, (_, index) => `web-${index}`);
  const computes = names.map((name) =>
    aCompute({ projectId: name, projectName: name, computeId: `ep-${name}`, branchId: `br-${name}`, ...BEFORE }),
  );
  const subjects = computes.map((compute) => ({ compute, baseline: BEFORE }));
  const forecasts = forecastFleet({ policies, subjects, fromMs: FROM_MS, toMs: untilMs + 7 * DAY_MS });
  const found = { late: 0, unforeseen: [] as string[], byTrial: [] as string[] };
  for (const write of writes) {
    const computeId = write.path.split('/').at(-1) ?? '';
    const index = computes.findIndex((one) => one.computeId === computeId);
    const events = daemon.events.filter(({ event }) => event.compute.computeId === computeId);
    const verdict = judgeWrite(write, events, forecasts[index]?.segments ?? []);
    const line = `${write.at} ${computeId} ${JSON.stringify((write.body as Endpoint).endpoint)}`;
    if (verdict.kind === 'unforeseen') found.unforeseen.push(`${line}: ${verdict.why}`);
    if (verdict.kind === 'late') found.late += 1;
    const [compute, atMs] = [computes[index], Date.parse(write.at)];
    if (!verdict.disconnects || !compute || atMs < FROM_MS + DAY_MS) continue;
    const boundaryMs = lastBoundary({ policies: without, compute, baseline: BEFORE }, atMs, 'size') ?? FROM_MS;
    const why = whyByTrial({ without, compute, boundaryMs, atMs, write, events });
    const isAgain = restarted.has(`${computeId} ${boundaryMs}`);
    restarted.add(`${computeId} ${boundaryMs}`);
    if (why !== undefined || isAgain) found.byTrial.push(`${line}: ${why ?? 'again after the same boundary'}`);
  }
  return found;
}

/** Why the trial has restarted a compute; undefined if the same would have been written without it. */
function whyByTrial({ without, compute, boundaryMs, atMs, write, events }: Without): string | undefined {
  const sizeAt = (instantMs: number) =>
    decide({ policies: without, compute, baseline: BEFORE, instantMs }).enforced.size ?? BEFORE;
  const size = sizeAt(atMs);
  if (sameSize(sizeAt(boundaryMs - 1), size))
    return `without the trial it would have had ${JSON.stringify(size)} before`;
  const { suspend_timeout_seconds: suspendTimeoutSeconds = 0 } = (write.body as Endpoint).endpoint;
  if (!agrees(write, { ...size, suspendTimeoutSeconds })) return `without the trial ${JSON.stringify(size)} was due`;
  const isHeldByTrial = events.some(
    ({ atMs: toldMs, event }) =>
      event.kind === 'held_back' && toldMs > boundaryMs && toldMs <= atMs && gatesOf(event.plan).includes('trial_flip'),
  );
  return isHeldByTrial ? 'the trial has held it back until then' : undefined;
}

interface Without {
  without: Judging['policies'];
  compute: Compute;
  /** When policies have last changed the size. */
  boundaryMs: number;
  atMs: number;
  write: RecordedRequest;
  /** Of the compute. */
  events: Events;
}

type Events = SimulatedDaemon['events'];

/** Foreseen for the instant at which it was decided; late if it came later than that, and a gate had a reason. */
function judgeWrite(write: RecordedRequest, events: Events, segments: readonly Segment[]) {
  const atMs = Date.parse(write.at);
  const started = events.findLast(({ atMs: toldMs, event }) => event.kind === 'write_started' && toldMs <= atMs);
  const decidedMs = started?.atMs ?? atMs;
  const disconnects = started?.event.kind === 'write_started' && started.event.action.disconnects;
  const segment = segments.find(({ fromMs, toMs }) => fromMs <= decidedMs && decidedMs < toMs);
  if (!segment || !agrees(write, segment)) {
    return { kind: 'unforeseen', why: `foreseen was ${JSON.stringify(segment)}`, disconnects } as const;
  }
  if (atMs - segment.fromMs <= SOON_MS) return { kind: 'in time', disconnects } as const;
  const isReason = ({ event, atMs: toldMs }: Events[number]) =>
    event.kind === 'held_back' && toldMs >= segment.fromMs && toldMs <= atMs;
  if (events.some(isReason) || segment.fromMs === FROM_MS) return { kind: 'late', disconnects } as const;
  const since = new Date(segment.fromMs).toISOString();
  return { kind: 'unforeseen', why: `late since ${since} without a reason`, disconnects } as const;
}

const BEFORE = { minCu: 0.5, maxCu: 4, suspendTimeoutSeconds: 1800 };

interface Endpoint {
  endpoint: Record<string, number>;
}

function agrees({ body }: RecordedRequest, segment: typeof BEFORE): boolean {
  const values: Record<string, number> = {
    autoscaling_limit_min_cu: segment.minCu,
    autoscaling_limit_max_cu: segment.maxCu,
    suspend_timeout_seconds: segment.suspendTimeoutSeconds,
  };
  return Object.entries((body as Endpoint).endpoint).every(([field, value]) => values[field] === value);
}
