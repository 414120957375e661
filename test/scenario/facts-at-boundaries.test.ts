/** A daemon over two working days, in the combinations of facts by which the engine decides or reads: measured, and only assumed. */
import { expect, it, onTestFinished } from 'vitest';
import { ACCOUNT_FACTS, type AccountFacts, FACT_NAMES } from '../../src/domain/compute/account-facts.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { emulated, type Truth } from '../verify/service.ts';

const HOUR_MS = 3_600_000;
const FROM = Date.parse('2026-03-02T00:00:00Z');
const USUAL = Object.fromEntries(FACT_NAMES.map((fact) => [fact, ACCOUNT_FACTS[fact][0]])) as Truth;
const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: [shop, app] }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 1-2, suspend_after: never }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
  - name: jobs
    kind: schedule
    select: { projects: [job] }
    windows: [{ at: Mon-Fri 09:00-17:00 UTC, suspend_after: never }]
    otherwise: { suspend_after: 10m }
`;

/** The sleeping shop, and the second day, on which all sleep at their boundaries. */
const ASLEEP = [
  '02T00:00 shop 1 CU',
  '02T08:00 shop 2 CU, -1 s',
  '02T18:00 shop 1 CU, 300 s',
  '03T08:00 app 2 CU, -1 s',
  '03T08:00 shop 2 CU, -1 s',
  '03T09:00 job -1 s',
  '03T17:00 job 600 s',
  '03T18:00 app 1 CU, 300 s',
  '03T18:00 shop 1 CU, 300 s',
];
/** A timeout is changed at once; the lowering of the awake app waits for its sleep. */
const AT_ONCE = [
  '02T08:00 app 2 CU, -1 s!',
  '02T09:00 job -1 s',
  '02T17:00 job 600 s',
  ...['02T18:00 app 300 s', '02T18:30 app 1 CU'],
];
/** As the answers then show, the timeouts restarted their computes: the lowering is tried when the cooldown of that ends. */
const AT_ONCE_BUT_RESTARTS = [
  '02T08:00 app 2 CU, -1 s!',
  '02T09:00 job -1 s!',
  '02T17:00 job 600 s!',
  ...['02T18:00 app 300 s!', '02T18:10 app 1 CU'],
];
/** A timeout waits like a lowering, and goes with a raise. */
const WAITING = ['02T08:00 app 2 CU, -1 s!', '02T11:00 job -1 s!', '02T19:00 job 600 s!', '02T20:00 app 1 CU, 300 s!'];

/** Each write: when, of which project, what, and `!` where it restarts an awake compute, as the daemon expects or its answer shows. */
async function writesOfTwoDays(truth: Truth, verified: AccountFacts): Promise<string[]> {
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: FROM, policies: POLICIES, verified, platform: emulated(truth) },
    computes: {
      shop: { minCu: 0.25, maxCu: 2 },
      app: { state: 'active', connections: 3, minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 },
      job: { state: 'active', connections: 2, minCu: 1, maxCu: 1, suspendTimeoutSeconds: 600 },
    },
  });
  onTestFinished(() => daemon.close());
  await daemon.clock.runTo(FROM + 48 * HOUR_MS);
  const writes = daemon.events.flatMap(({ atMs, event }) => {
    if (event.kind !== 'write_ended') return [];
    const { compute, action, outcome } = event;
    expect(outcome).toBe('applied');
    const { maxCu, suspendTimeoutSeconds: seconds } = action.fields;
    const what = [...(maxCu === undefined ? [] : [`${maxCu} CU`]), ...(seconds === undefined ? [] : [`${seconds} s`])];
    const at = new Date(atMs).toISOString().slice(8, 16);
    return [`${at} ${compute.projectId} ${what.join(', ')}${action.disconnects ? '!' : ''}`];
  });
  expect(await daemon.platform.writes()).toHaveLength(writes.length);
  return writes.toSorted();
}

const COMBINATIONS = ACCOUNT_FACTS.idle_resize.flatMap((idle_resize) =>
  ACCOUNT_FACTS.timeout_change.flatMap((timeout_change) =>
    (['moves', 'stays'] as const).map((dates): Truth => {
      return { ...USUAL, idle_resize, timeout_change, list_updated_at: dates, compute_updated_at: dates };
    }),
  ),
);

it.each(COMBINATIONS)(
  'makes each change once: idle_resize $idle_resize, timeout_change $timeout_change, updated_at $list_updated_at',
  async (truth) => {
    const expected = [...ASLEEP, ...(truth.timeout_change === 'restarts' ? WAITING : AT_ONCE)].toSorted();
    expect(await writesOfTwoDays(truth, truth)).toEqual(expected);
  },
);

it.each(COMBINATIONS.filter(({ list_updated_at }) => list_updated_at === 'stays'))(
  'so it does where nothing was measured, and timeouts are assumed to restart nothing: $idle_resize, $timeout_change',
  async (truth) => {
    const made = truth.timeout_change === 'restarts' ? AT_ONCE_BUT_RESTARTS : AT_ONCE;
    expect(await writesOfTwoDays(truth, {})).toEqual([...ASLEEP, ...made].toSorted());
  },
);
