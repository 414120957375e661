/** A week of six teams with all that people do in it, and what was told to whom: a daemon in simulated time. */
import { request } from 'undici';
import type { ComputeSettings } from '../../src/domain/compute/compute.ts';
import type { MessageDocument } from '../../src/domain/notifications/notification.ts';
import { EVERY_COMPUTE } from '../../src/domain/policy/selector.ts';
import { seededRandom } from '../../src/domain/random.ts';
import type { WorldEvent } from '../../src/emulator/world/entities.ts';
import type { ConnectionCounters } from '../../src/ports/connections.ts';
import type { RecordedRequest } from '../support/platform.ts';
import { isLong } from '../support/seed.ts';
import { givenReadings } from '../support/simulated/given-readings.ts';
import { readingOf } from './operators-troubles.ts';
import { MINUTE_MS, type OperatorsWeek, POLICIES, startWeek, TEAMS } from './operators-week.ts';

const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const COUNTED_MS = 2 * MINUTE_MS;

/** Around what the policies do at an hour, the projects are listed each minute, else each half hour: computes may wake just before it. */
const BUSY_HOURS: readonly [number, number][] = [
  ...([
    [7.4, 8.3],
    [8.9, 10],
    [16.9, 17.2],
    [18.1, 19.3],
    [20, 21.3],
  ] as [number, number][]),
];

export interface Told {
  atMs: number;
  receiver: string;
  message: MessageDocument;
}

/** Something that people did; of one compute, or of all. */
export interface Deed {
  atMs: number;
  what: 'hold' | 'freeze' | 'manual' | 'edit' | 'approve';
  /** Undefined: it may concern any. */
  computeId?: string;
  fields?: Partial<ComputeSettings>;
}

/** A change that reached the emulator and was taken. */
export interface Change {
  atMs: number;
  computeId: string;
  fields: Partial<ComputeSettings>;
}

export interface Week {
  told: Told[];
  deeds: Deed[];
  events: WorldEvent[];
  /** Those of the daemon, and of people. */
  changes: Change[];
  /** What the daemon has exported, each minute. */
  series: OperatorsWeek['series'];
}

/** Runs from an instant to another. Each day has an edit of the policies, holds and changes in the console, drawn from the seed. */
export async function runWeek(options: { size: number; seed: number; fromMs: number; toMs: number }): Promise<Week> {
  const { fromMs, toMs, size, seed } = options;
  const random = seededRandom(seed);
  const told: Told[] = [];
  const deeds: Deed[] = [];
  const { source, give } = givenReadings();
  const week: OperatorsWeek = await startWeek({
    ...{ size, seed, fromMs, source, counters: trueCounters(() => week.daemon) },
    rhythm: {
      ...{ inventoryMs: 30 * MINUTE_MS, resyncMs: 5 * MINUTE_MS, waitingMs: 2 * MINUTE_MS, rulesMs: 2 * MINUTE_MS },
      ...{ samplingMs: COUNTED_MS, guardsMs: DAY_MS, wasteMs: DAY_MS, usageMs: HOUR_MS, shortestRoundMs: 30_000 },
    },
    inventoryMs: (nowMs) => (isBusyHour(nowMs) ? MINUTE_MS : 30 * MINUTE_MS),
    staging: 'always',
    answer(receiver, message) {
      told.push({ atMs: week.daemon.clock.now(), receiver, message });
      return { ok: true };
    },
  });
  const events: WorldEvent[] = [];
  week.daemon.platform.onEvents((news) => events.push(...news));
  const people = peopleOf({
    week,
    random,
    size,
    deeds,
    told,
    edit: async (text) => {
      give(await readingOf(week, text));
    },
  });
  const changes: Change[] = [];
  try {
    for (const { atMs, act } of people.filter((one) => one.atMs >= fromMs && one.atMs < toMs)) {
      await runOn(week, atMs, changes);
      await act(atMs);
    }
    await runOn(week, toMs, changes);
    return { told, deeds, events, changes, series: week.series };
  } finally {
    await week.end();
  }
}

function isBusyHour(nowMs: number): boolean {
  const hour = (nowMs % DAY_MS) / HOUR_MS;
  return BUSY_HOURS.some(([from, to]) => hour >= from && hour < to);
}

/** Goes on, and takes out what the emulator has recorded: it keeps the last requests only. */
async function runOn(week: OperatorsWeek, toMs: number, changes: Change[]): Promise<void> {
  const { clock, platform } = week.daemon;
  for (;;) {
    const nextMs = Math.min(toMs, clock.now() + 4 * HOUR_MS);
    await week.runTo(nextMs);
    if (isLong) process.stderr.write(`${new Date(clock.now()).toISOString()}\n`);
    const writes = await platform.writes();
    changes.push(...writes.flatMap(changeOf));
    const { body } = await request(`${platform.origin}/_emulator/requests`, { method: 'DELETE' });
    await body.dump();
    if (nextMs === toMs) return;
  }
}

function changeOf({ at, path, status, body }: RecordedRequest): Change[] {
  if (status >= 300) return [];
  const { endpoint } = body as { endpoint: Record<string, number | undefined> };
  const {
    autoscaling_limit_min_cu: minCu,
    autoscaling_limit_max_cu: maxCu,
    suspend_timeout_seconds: timeout,
  } = endpoint;
  const fields = {
    ...(minCu !== undefined && maxCu !== undefined && { minCu, maxCu }),
    ...(timeout !== undefined && { suspendTimeoutSeconds: timeout }),
  };
  return [{ atMs: Date.parse(at), computeId: path.split('/').at(-1) ?? '', fields }];
}

/** Connections as they are, asked of the emulator. */
function trueCounters(daemonOf: () => OperatorsWeek['daemon']): ConnectionCounters {
  return {
    of: () => ({
      async count(requests) {
        const { body } = await request(`${daemonOf().platform.origin}/_emulator/state`);
        const { computes } = (await body.json()) as { computes: { compute_id: string; connections: number }[] };
        const counts = new Map(computes.map((one) => [one.compute_id, one.connections]));
        const found = requests.map(({ compute: { computeId } }) => [computeId, counts.get(computeId) ?? 0] as const);
        return new Map(found.map(([id, connections]) => [id, { ok: true, value: { connections } }]));
      },
      close: async () => {},
    }),
    close: async () => {},
  };
}

interface People {
  week: OperatorsWeek;
  random(): number;
  size: number;
  deeds: Deed[];
  told: readonly Told[];
  edit(text: string): Promise<void>;
}

/** A compute of a team, drawn; those that are awake come first. */
async function drawn({ week, random, size }: People, team: number): Promise<string> {
  const { body } = await request(`${week.daemon.platform.origin}/_emulator/state`);
  const { computes } = (await body.json()) as { computes: { compute_id: string; state: string }[] };
  const awake = computes.filter(({ state, compute_id: id }) => state === 'active' && id.includes(TEAMS[team] ?? ''));
  const nth = Math.floor(random() * (size / TEAMS.length));
  return awake[nth % awake.length]?.compute_id ?? `ep-${TEAMS[team]}-${nth * TEAMS.length + team}`;
}

const TEAM_HOURS = (team: string) => `select: { projects: ["${team}-*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:30, size: 1-4`;

/** A policy that is rolled out to a share of a team's computes. */
const bigger = (share: string) => `  - name: bigger
    kind: schedule
    priority: 1
    select: { projects: ["team-b-*"], share: ${share}, min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:30, size: 2-4, suspend_after: 15m }]
    otherwise: leave
    disruption: { lower: { when: idle, deadline: 2h, then: apply }, at_once: 10% }
`;

const [LATER, SMALLER, LARGER] = [
  POLICIES.replace(TEAM_HOURS('team-a'), TEAM_HOURS('team-a').replace('18:30', '19:00')),
  TEAM_HOURS('team-c').replace('1-4', '1-2'),
  (text: string) => text.replaceAll('size: 1-4', 'size: 2-4').replaceAll('size: 1-2', 'size: 2-4'),
];

/** The edit of each day, from Monday on: a window, a rollout in two steps, a smaller size, a larger one for all, a timeout twice. */
const EDITS: readonly string[] = [
  LATER,
  `${LATER}${bigger('10%')}`,
  `${LATER}${bigger('100%')}`,
  `${LATER.replace(TEAM_HOURS('team-c'), SMALLER)}${bigger('100%')}`,
  LARGER(`${LATER.replace(TEAM_HOURS('team-c'), SMALLER)}${bigger('100%')}`),
  LARGER(LATER).replace('suspend_after: 5m', 'suspend_after: 4m'),
  LARGER(LATER).replaceAll('suspend_after: 5m', 'suspend_after: 4m'),
];

/** All that people do, in order. */
function peopleOf(people: People): { atMs: number; act(atMs: number): Promise<void> }[] {
  const { week, random, deeds, edit } = people;
  const mondayMs = Date.UTC(2026, 0, 12);
  const minutes = () => Math.floor(random() * 30) * MINUTE_MS;
  const days = EDITS.map((text, day) => {
    const hour = (hours: number) => mondayMs + day * DAY_MS + hours * HOUR_MS + minutes();
    const hold = async (atMs: number, team: number, what: object) => {
      const computeId = await drawn(people, team % TEAMS.length);
      const named = { compute: computeId, owner: 'ana', reason: 'an import', ...what };
      const held = await week.daemon.operator.hold({ forSeconds: 7200, ...named });
      if (!held.ok) throw new Error(held.error.message);
      deeds.push({ atMs, what: 'hold', computeId });
    };
    return [
      { atMs: hour(10), act: (atMs: number) => hold(atMs, day, { size: { minCu: 4, maxCu: 4 } }) },
      {
        atMs: hour(11),
        async act(atMs: number) {
          await edit(text);
          deeds.push({ atMs, what: 'edit' });
        },
      },
      {
        atMs: hour(12),
        async act(atMs: number) {
          const command = people.told.findLast(({ message }) => message.kind === 'staged')?.message.command;
          if (day === 4 && command) await approve(people, command, atMs);
        },
      },
      {
        atMs: hour(13),
        async act() {
          const computeId = await drawn(people, (day + 4) % TEAMS.length);
          await changeByHand(week, computeId);
          deeds.push({ atMs: week.daemon.clock.now(), what: 'manual', computeId, fields: BY_HAND });
        },
      },
      { atMs: hour(14), act: (atMs: number) => hold(atMs, day + 1, { forSeconds: 6 * 3600, freeze: true }) },
      ...(day === 4 ? [{ atMs: hour(19), act: (atMs: number) => freezeTeam(people, atMs) }] : []),
    ];
  });
  return days.flat().toSorted((a, b) => a.atMs - b.atMs);
}

/** Does what the message about a staged set says. */
async function approve({ week, deeds }: People, command: string, atMs: number): Promise<void> {
  const asked = { hash: command.replace('ebb approve ', ''), owner: 'ana' };
  const counted = await week.daemon.operator.approve({ ...asked, preview: true });
  const approved = await week.daemon.operator.approve({
    ...asked,
    ...(counted.ok && { confirm: counted.value.count }),
  });
  if (!approved.ok) throw new Error(approved.error.message);
  deeds.push({ atMs, what: 'approve' });
}

async function freezeTeam({ week, deeds }: People, atMs: number): Promise<void> {
  const select = { ...EVERY_COMPUTE, projects: ['team-f-*'] };
  const asked = { owner: 'ana', reason: 'a release', forSeconds: 14 * 3600, allowRaise: false };
  const frozen = await week.daemon.operator.freeze({ select, ...asked });
  if (!frozen.ok) throw new Error(frozen.error.message);
  deeds.push({ atMs, what: 'freeze' });
}

const BY_HAND: ComputeSettings = { minCu: 0.5, maxCu: 2, suspendTimeoutSeconds: 600 };

async function changeByHand(week: OperatorsWeek, computeId: string): Promise<void> {
  const { platform, clock } = week.daemon;
  const endpoint = {
    ...{ autoscaling_limit_min_cu: BY_HAND.minCu, autoscaling_limit_max_cu: BY_HAND.maxCu },
    suspend_timeout_seconds: BY_HAND.suspendTimeoutSeconds,
  };
  const { body, statusCode } = await request(`${platform.url}/projects/${computeId.slice(3)}/endpoints/${computeId}`, {
    ...{ method: 'PATCH', body: JSON.stringify({ endpoint }) },
    headers: { authorization: `Bearer ${platform.apiKey}`, 'content-type': 'application/json' },
  });
  await body.dump();
  if (statusCode === 423) {
    // A check of the platform locks the project for some seconds.
    await clock.runTo(clock.now() + MINUTE_MS);
    return changeByHand(week, computeId);
  }
  if (statusCode !== 200) throw new Error(`by hand: ${statusCode}`);
}
