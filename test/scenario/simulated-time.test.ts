/**
 * Days of a fleet at speed, with faults: what the platform was asked for is what `forecast` had said, and what came later has a
 * recorded reason. A day; with EBB_LONG=1 a week.
 */
import { expect, it } from 'vitest';
import { clockByTable, type DaemonEvent } from '../../src/compose/run-daemon.ts';
import { forecastFleet, type Segment } from '../../src/domain/forecast/forecast.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { aCompute } from '../support/builders.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { makeFolder, type Platform, type RecordedRequest, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { isLong, printSeed, runsScenarios, SEED } from '../support/seed.ts';

const DAYS = isLong ? 7 : 1;
const COMPUTES = 50;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** A Monday. */
const FROM_MS = Date.UTC(2026, 10, 23);
const TO_MS = FROM_MS + DAYS * DAY_MS;

/** So long after a boundary time runs slowly; what comes later than that must have a reason. */
const SOON_MS = 10 * MINUTE_MS;

const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00, size: 1-2, suspend_after: never }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
    disruption: { at_once: 100% }
  - name: small
    kind: schedule
    select: { projects: ["dev-*"], min_age: 1m }
    windows: [{ at: 08:00-18:00, size: 0.5 }]
    otherwise: { size: 0.25 }
    disruption: { lower: { when: idle, deadline: 2h, then: apply }, at_once: 100% }
`;

const FAULTS = [
  { kind: 'status', status: 423, method: 'PATCH', share: 0.1 },
  { kind: 'status', status: 503, share: 0.03 },
  { kind: 'hang_up', method: 'PATCH', share: 0.05 },
  { kind: 'operation', action: 'apply_config', outcome: 'fail', share: 0.1 },
];

const NAMES = Array.from({ length: COMPUTES }, (_, index) => `${index % 2 === 0 ? 'web' : 'dev'}-${index}`);

/** Around midnight and around each boundary a minute is a second; elsewhere an hour is a sixth of one. */
function timeTable(): { realMs: number; simulatedMs: number }[] {
  const table = [{ realMs: 0, simulatedMs: FROM_MS }];
  const goOn = (simulatedMs: number, factor: number) => {
    const last = table.at(-1) ?? { realMs: 0, simulatedMs: FROM_MS };
    table.push({ realMs: last.realMs + (simulatedMs - last.simulatedMs) / factor, simulatedMs });
  };
  goOn(FROM_MS + SOON_MS, 60);
  for (let dayMs = FROM_MS; dayMs < TO_MS; dayMs += DAY_MS) {
    for (const hour of [8, 18]) {
      const boundaryMs = dayMs + hour * 60 * MINUTE_MS;
      goOn(boundaryMs - MINUTE_MS, 20_000);
      goOn(boundaryMs + SOON_MS, 60);
    }
  }
  goOn(TO_MS, 20_000);
  return table;
}

interface Told {
  atMs: number;
  event: DaemonEvent;
}

describeWith('redis-server', `${DAYS === 1 ? 'a day' : 'a week'} of ${COMPUTES} computes, with faults`, () => {
  it.runIf(runsScenarios)(
    'brings no change that was not foreseen, and none late without a recorded reason',
    async (test) => {
      printSeed();
      const redis = await startRedisServer();
      test.onTestFinished(() => redis.close());
      const folder = await makeFolder({ 'policy.yaml': POLICIES, 'ebb.yaml': 'api_requests_per_minute: 100000\n' });
      test.onTestFinished(() => folder.remove());
      const clock = clockByTable({ table: timeTable(), startedAtMs: Date.now() + 3000 });
      const computes = NAMES.map((name, index) => [name, index % 3 === 0 ? { state: 'active', connections: 2 } : {}]);
      const platform = await startTestPlatform(Object.fromEntries(computes), { clock, seed: SEED });
      test.onTestFinished(() => platform.close());
      for (const [nth, fault] of FAULTS.entries()) await platform.control('faults', { ...fault, seed: SEED + nth });
      const told: Told[] = [];
      const startedMs = clock.now();
      const daemon = await startTestDaemon({
        ...{ platform, folder: folder.path, clock, env: { EBB_QUEUE_URL: redis.url } },
        onEvent: (event) => void told.push({ atMs: clock.now(), event }),
      });
      test.onTestFinished(() => daemon.stop());

      await expect.poll(() => clock.now(), { timeout: 600_000, interval: 200 }).toBeGreaterThan(TO_MS);
      const writes = (await platform.writes()).filter(({ at }) => Date.parse(at) < TO_MS);
      expect(writes.length).toBeGreaterThanOrEqual(2 * COMPUTES);
      const foreseen = await foreseenSegments(folder.path, startedMs);
      expect(writes.flatMap((write) => unforeseen(write, foreseen, told))).toEqual([]);

      await platform.clearFaults();
      await expectAsForeseen(platform, foreseen);
    },
    900_000,
  );
});

async function foreseenSegments(folder: string, fromMs: number): Promise<Map<string, readonly Segment[]>> {
  const loaded = await loadPolicySet({ paths: [`${folder}/policy.yaml`], settings: DEFAULT_POLICY_SETTINGS });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded));
  const subjects = NAMES.map((name) => ({
    compute: aCompute({ projectId: name, projectName: name, computeId: `ep-${name}`, minCu: 0.25, maxCu: 0.25 }),
  }));
  const policies = compilePolicies(loaded.set);
  // To the end and some days on: what is late at the end is late from there.
  const forecasts = forecastFleet({ policies, subjects, fromMs, toMs: TO_MS + DAY_MS });
  return new Map(NAMES.map((name, index) => [`ep-${name}`, forecasts[index]?.segments ?? []]));
}

/** What is wrong with a PATCH, in a line; nothing if it was foreseen, and in time or late for a reason. */
function unforeseen(write: RecordedRequest, foreseen: Map<string, readonly Segment[]>, told: Told[]): string[] {
  const computeId = write.path.split('/').at(-1) ?? '';
  const atMs = Date.parse(write.at);
  const ofCompute = told.filter(({ event }) => event.compute.computeId === computeId);
  const started = ofCompute.findLast(({ atMs: eventMs, event }) => event.kind === 'write_started' && eventMs <= atMs);
  // It was decided before it was sent: between the two a boundary may pass.
  const segment = foreseen
    .get(computeId)
    ?.find(({ fromMs, toMs }) => fromMs <= (started?.atMs ?? atMs) && (started?.atMs ?? atMs) < toMs);
  const { endpoint } = write.body as { endpoint: Record<string, number> };
  const line = `${write.at} ${computeId} ${JSON.stringify(endpoint)}`;
  if (!segment || !agrees(endpoint, segment)) return [`${line}: foreseen was ${JSON.stringify(segment)}`];
  if (atMs - segment.fromMs <= SOON_MS || ofCompute.some((one) => isReason(one, segment.fromMs, atMs))) return [];
  return [`${line}: late since ${new Date(segment.fromMs).toISOString()} without a reason`];
}

function agrees(endpoint: Record<string, number>, { minCu, maxCu, suspendTimeoutSeconds }: Segment): boolean {
  const values: Record<string, number> = {
    autoscaling_limit_min_cu: minCu,
    autoscaling_limit_max_cu: maxCu,
    suspend_timeout_seconds: suspendTimeoutSeconds,
  };
  return Object.entries(endpoint).every(([field, value]) => values[field] === value);
}

/** A gate that held it, a write that was not made, an operation that failed. */
function isReason({ atMs, event }: Told, fromMs: number, untilMs: number): boolean {
  if (atMs < fromMs || atMs > untilMs) return false;
  if (event.kind === 'held_back') return true;
  if (event.kind === 'write_ended') return event.outcome !== 'applied';
  return event.kind === 'operation_ended' && event.operation.outcome !== 'succeeded';
}

/** Once nothing goes wrong any more the fleet is as was foreseen. */
async function expectAsForeseen(platform: Platform, foreseen: Map<string, readonly Segment[]>): Promise<void> {
  const wanted = [...foreseen].map(([id, segments]) => {
    const last = segments.find(({ fromMs, toMs }) => fromMs <= TO_MS && TO_MS < toMs);
    return [id, `${last?.minCu}-${last?.maxCu}`];
  });
  const sizes = async () => {
    const answer = await fetch(`${platform.origin}/_emulator/state`);
    const { computes } = (await answer.json()) as {
      computes: { compute_id: string; min_cu: number; max_cu: number }[];
    };
    return computes.map(({ compute_id, min_cu, max_cu }) => [compute_id, `${min_cu}-${max_cu}`]);
  };
  await expect
    .poll(async () => (await sizes()).toSorted(), { timeout: 120_000, interval: 200 })
    .toEqual(wanted.toSorted());
}
