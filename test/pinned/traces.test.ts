/** What a daemon writes in fixed scenarios, change by change: the whole application against the emulator, on simulated time. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type SimulatedDaemon, startSimulatedDaemon } from '../support/simulated/daemon.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const OWNER = { owner: 'ann', reason: 'a test' };

const OFFICE_HOURS = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 Europe/Berlin, size: 1-2, suspend_after: never }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
`;

const MAINTENANCE = `version: 1
policies:
  - name: fresh
    kind: restart
    select: { projects: ["*"], min_age: 1m }
    at: Sun 03:00-05:00 Europe/Berlin
`;

interface Scenario {
  from: string;
  days: number;
  policies?: string;
  /** What happens meanwhile, by its instant. */
  steps?: [string, (daemon: SimulatedDaemon) => unknown][];
  /** Changes that somebody else makes. */
  byHand?: number;
}

const SCENARIOS: Record<string, Scenario> = {
  // Clocks go forward on Sunday, 29 March.
  'office-hours': { from: '2026-03-26T00:00:00Z', days: 7 },
  hold: {
    from: '2026-03-02T00:00:00Z',
    days: 2,
    steps: [
      [
        '2026-03-02T10:00:00Z',
        ({ operator }) =>
          operator.hold({ ...OWNER, compute: 'shop/ep-shop', forSeconds: 30 * 3600, size: { minCu: 4, maxCu: 4 } }),
      ],
    ],
  },
  freeze: {
    from: '2026-03-02T00:00:00Z',
    days: 2,
    steps: [
      [
        '2026-03-02T12:00:00Z',
        ({ operator }) => operator.freeze({ ...OWNER, select: 'all', forSeconds: 12 * 3600, allowRaise: false }),
      ],
    ],
  },
  'manual-change': {
    from: '2026-03-02T00:00:00Z',
    days: 2,
    steps: [['2026-03-02T12:00:00Z', ({ platform }) => changeByHand(platform)]],
    byHand: 1,
  },
  outage: {
    from: '2026-03-02T00:00:00Z',
    days: 1,
    steps: [
      ['2026-03-02T06:50:00Z', (daemon) => daemon.setOutage(true)],
      ['2026-03-02T07:25:00Z', (daemon) => daemon.setOutage(false)],
    ],
  },
  restart: { from: '2026-03-07T00:00:00Z', days: 3, policies: MAINTENANCE },
};

describe('a daemon', () => {
  it.each(Object.keys(SCENARIOS))('writes in the scenario %s what it always wrote', async (name) => {
    await expect(await traceOf(SCENARIOS[name] as Scenario)).toMatchFileSnapshot(`expected/trace-${name}.txt`);
  });
});

/** A line for each change: when, to which compute, what, why, and what became of it. */
async function traceOf({ from, days, policies = OFFICE_HOURS, steps = [], byHand = 0 }: Scenario): Promise<string> {
  const fromMs = Date.parse(from);
  const daemon = await startSimulatedDaemon({
    ...{ fromMs, policies },
    computes: { shop: { minCu: 0.25, maxCu: 2 }, app: { state: 'active', connections: 3, minCu: 0.25, maxCu: 4 } },
  });
  onTestFinished(() => daemon.close());
  for (const [instant, step] of steps) {
    await daemon.clock.runTo(Date.parse(instant));
    const done = step(daemon);
    await daemon.clock.runTo(Date.parse(instant) + 1);
    await done;
  }
  await daemon.clock.runTo(fromMs + days * DAY_MS);
  const lines = traceLines(daemon);
  expect(await daemon.platform.writes()).toHaveLength(lines.length + byHand);
  // Computes of two projects are written to side by side.
  return lines
    .toSorted()
    .join('')
    .replaceAll(/h-[0-9a-f]{10}/g, 'h-…');
}

function traceLines({ events }: SimulatedDaemon): string[] {
  return events.flatMap(({ atMs, event }) => {
    if (event.kind !== 'write_ended') return [];
    const { compute, action, reasons, outcome } = event;
    const why = reasons.map(({ code, policy }) => (policy === undefined ? code : `${code} of ${policy}`)).join(', ');
    const at = new Date(atMs).toISOString();
    const what = action.kind === 'restart' ? 'restart' : JSON.stringify(action.fields);
    return [`${at} ${compute.computeId} ${what}: ${why} (${outcome})\n`];
  });
}

async function changeByHand({ url, apiKey }: SimulatedDaemon['platform']): Promise<void> {
  const body = JSON.stringify({ endpoint: { autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 8 } });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/projects/app/endpoints/ep-app`, { method: 'PATCH', headers, body });
  if (!answer.ok) throw new Error(await answer.text());
}
