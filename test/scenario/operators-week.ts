/** A fleet of six teams, and a daemon that works for them in simulated time: its metrics each minute. */
import { readFileSync } from 'node:fs';
import type { MessageDocument } from '../../src/domain/notifications/notification.ts';
import { seededRandom } from '../../src/domain/random.ts';
import type { Fleet, Load } from '../../src/emulator/fleet.ts';
import type { Sender, SendOutcome } from '../../src/ports/outbox.ts';
import { type SimulatedDaemon, startSimulatedDaemon } from '../support/simulated/daemon.ts';

export const MINUTE_MS = 60_000;
export const TEAMS = ['team-a', 'team-b', 'team-c', 'team-d', 'team-e', 'team-f'];
/** So long before a change that disconnects clients its owner is told. */
export const LEAD_MS = 15 * MINUTE_MS;
/** A second boundary of the morning, of one team. */
const LATE_TEAM = 'team-f';

/** Daemons look about twice as often. */
const RHYTHM = {
  ...{ inventoryMs: MINUTE_MS, resyncMs: MINUTE_MS, waitingMs: MINUTE_MS, rulesMs: MINUTE_MS, samplingMs: MINUTE_MS },
  shortestRoundMs: 30_000,
};

function policyOf(team: string): string {
  const windows = team === LATE_TEAM ? 'Mon-Fri 09:30-17:00' : 'Mon-Fri 08:00-18:30';
  return `  - name: ${team}-hours
    kind: schedule
    select: { projects: ["${team}-*"], min_age: 1m }
    windows: [{ at: ${windows}, size: 1-4, suspend_after: 15m }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
    disruption: { lower: { when: idle, deadline: 2h, then: apply }, at_once: 10% }`;
}

/** Connections are counted of this team's computes. */
export const COUNTED_TEAM = 'team-a';

export const POLICIES = `version: 1
sources: { main: { from: prometheus, url: "http://127.0.0.1:9090", query: 'sum(connections{compute="$compute"})' } }
policies:
${TEAMS.map(policyOf).join('\n')}
  - name: room
    kind: headroom
    select: { projects: ["${COUNTED_TEAM}-*"], min_age: 1m }
    connections: main
    target: 70%
    max_size: 4
`;

const CLASSES: ((cu: number) => Load[])[] = [
  (cu) => [{ class: 'office_users', utcOffsetHours: 0, cu }],
  (cu) => [{ class: 'office_users', utcOffsetHours: 0, cu }],
  (cu) => [{ class: 'bursty_api', utcOffsetHours: 0, cu: cu / 4 }],
  (cu) => [{ class: 'night_batch', utcOffsetHours: 0, cu }],
  () => [],
];

/** Computes in turn of each team, one in five without clients. */
function fleetOf(computes: number, seed: number): Fleet {
  const random = seededRandom(seed);
  const projects = Array.from({ length: computes }, (_, index) => {
    const id = `${TEAMS[index % TEAMS.length]}-${index}`;
    const load = CLASSES[Math.floor(random() * CLASSES.length)]?.(Math.exp(random() - 0.5)) ?? [];
    return {
      ...{ id, name: id, account: 'acme', regionId: 'aws-eu-central-1', pgVersion: 17 },
      computes: [
        {
          ...{ id: `ep-${id}`, branchId: `br-${id}`, branch: { name: 'main', default: true } },
          ...{ type: 'read_write' as const, state: 'idle' as const, connections: 0, load },
          ...{ minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 },
        },
      ],
    };
  });
  return { projects };
}

/** Values of each series, by minute since the start; undefined where the daemon was not there. */
type Series = Map<string, (number | undefined)[]>;

export interface OperatorsWeek {
  daemon: SimulatedDaemon;
  series: Series;
  /** Goes on to an instant, and looks at /metrics each minute. */
  runTo(instantMs: number): Promise<void>;
  /** Closes the daemon: from now on nothing answers. */
  end(): Promise<void>;
}

type StartOptions = Parameters<typeof startSimulatedDaemon>[0];

/** Starts the fleet and its daemon, with two receivers for each team and one for all; `answer` is what they say to a message. */
export async function startWeek(
  options: {
    size: number;
    seed: number;
    answer?: (receiver: string, message: MessageDocument) => SendOutcome;
    staging?: 'auto' | 'always';
  } & Pick<StartOptions, 'fromMs'> &
    Partial<StartOptions>,
): Promise<OperatorsWeek> {
  const { size, seed, answer, fromMs, staging = 'auto', ...more } = options;
  const series: Series = new Map();
  let isThere = true;
  const sender: Sender = {
    send: async ({ name }, { body }) => answer?.(name, JSON.parse(body)) ?? { ok: true },
    close: async () => {},
  };
  const receiver = (name: string) => ({
    ...{ name, to: 'webhook' as const, file: 'ebb.yaml', allowedOrigins: [] },
    url: { from: 'text' as const, text: `http://127.0.0.1/${name}` },
  });
  const ofTeam = (team: string) => ['chat', 'pager'].map((to) => ({ ...receiver(`${team}-${to}`), owners: [team] }));
  const receivers = [...TEAMS.flatMap(ofTeam), receiver('ops')];
  const daemon: SimulatedDaemon = await startSimulatedDaemon({
    ...{ fromMs, computes: {}, policies: POLICIES, sender, rhythm: RHYTHM },
    platform: { fleet: fleetOf(size, seed) },
    settings: (settings) => ({
      ...settings,
      staging,
      owners: TEAMS.map((team) => [`${team}-*`, team] as const),
      notify: { receivers, beforeMs: LEAD_MS },
    }),
    ...more,
  });

  async function end(): Promise<void> {
    if (isThere) await daemon.close();
    isThere = false;
  }

  async function look(): Promise<void> {
    const minute = Math.round((daemon.clock.now() - fromMs) / MINUTE_MS);
    const found = isThere ? seriesIn(await daemon.metricsText()) : [];
    for (const [name, value] of [['up{job="ebb", instance="one"}', isThere ? 1 : 0] as const, ...found]) {
      const values = series.get(name) ?? [];
      values[minute] = value;
      series.set(name, values);
    }
  }

  return {
    ...{ daemon, series },
    async runTo(instantMs) {
      while (daemon.clock.now() < instantMs) {
        await daemon.clock.runTo(Math.min(instantMs, daemon.clock.now() + MINUTE_MS));
        await look();
      }
    },
    end,
  };
}

const RULES = readFileSync('prometheus/rules/ebb.yml', 'utf8');
const WATCHED = new Set(RULES.match(/\bebb_[a-z_]+/g));
const LINE = /^(ebb_[a-z_]+)(?:\{(.*)\})? (\S+)$/gm;

/** The series that rules read, as Prometheus labels them. Names of a compute are only joined to its free connections. */
function seriesIn(text: string): (readonly [string, number])[] {
  const found = [...text.matchAll(LINE)].filter(([, name = '']) => WATCHED.has(name));
  const computeOf = (labels = '') => labels.match(/compute="[^"]*"/)?.[0];
  const counted = new Set(
    found.flatMap(([, name, labels]) => (name === 'ebb_connection_headroom_ratio' ? computeOf(labels) : [])),
  );
  return found
    .filter(([, name, labels]) => name !== 'ebb_compute_info' || counted.has(computeOf(labels)))
    .map(([, name, labels, value]) => [
      `${name}{job="ebb", instance="one"${labels ? `, ${labels}` : ''}}`,
      Number(value),
    ]);
}
