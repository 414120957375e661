/** Rules about what daemons say, by their log and their gauges: it is true, and nothing is said again and again. */

import { SECOND_MS } from './book.ts';
import { checkWarned } from './calm.ts';
import type { SimDaemon } from './daemon.ts';
import { parseTexts, TEAM } from './policies.ts';
import { hadTrouble, OF_PLATFORM, OF_STORE, textsNow } from './rollout.ts';
import type { World } from './world.ts';

/** A log line that is said more often in ten seconds helps nobody. */
const MOST_LINES = 5;
const LINES_MS = 10 * SECOND_MS;

/** Gauges are right so long after what they show, in milliseconds. */
const SHOWN_MS = 16 * SECOND_MS;

/** A round that began with a wrong clock may wait for so long, in milliseconds. */
const CORRECTED_MS = 60 * SECOND_MS;

/** A clock that is further off than this is wrong for certain, in milliseconds. */
const CLOCK_OFF_MS = 2_900;

/** Files that have changed so lately may not be those that a daemon has read, in milliseconds. */
const JUST_NOW_MS = 2 * SECOND_MS;

interface Line {
  event: string;
  hash?: string;
  owner?: string;
  problems?: readonly string[];
  generation?: number;
  warnings?: readonly string[];
}

/** What one daemon has said. */
export interface Said {
  /** When it last spoke of files that wait until they are finished, in true time. */
  delayedAtMs: number;
  /** When it last told of warnings, in true time. */
  warnedAtMs: number;
  gauge(name: string, labels?: object): number | undefined;
  line(level: 'info' | 'warn' | 'error', fields: object, message: string): void;
  set(name: string, labels: object, value: number): void;
  clear(name: string): void;
}

export function createSaid(world: World, who: string): Said {
  const gauges = new Map<string, number>();
  const times = new Map<string, number>();
  /** By event, and by owner where it has one, what was last said. */
  const last = new Map<string, string>();
  const keyOf = (name: string, labels: object) => `${name} ${JSON.stringify(labels)}`;

  function isRepeated(line: Line): boolean {
    const { event, hash, owner = '', problems, generation, warnings } = line;
    const what = JSON.stringify([hash, problems, generation, warnings]);
    const isSame = last.get(`${event} ${owner}`) === what;
    last.set(`${event} ${owner}`, what);
    if (event === 'ebb.policies_loaded' || event === 'ebb.policies_refused') last.delete('ebb.policies_delayed ');
    if (event === 'ebb.policies_recovered') last.delete(`ebb.policies_refused ${owner}`);
    if (event === 'ebb.policies_current') last.delete('ebb.superseded ');
    return isSame && SAID_ONCE.has(event);
  }

  const said: Said = {
    delayedAtMs: 0,
    warnedAtMs: 0,
    gauge: (name, labels = {}) => gauges.get(keyOf(name, labels)),
    line(level, fields, message) {
      const line = { event: '', ...fields };
      if (line.event === 'ebb.policies_delayed') said.delayedAtMs = world.time.now();
      if (line.event === 'ebb.policy_warnings') said.warnedAtMs = world.time.now();
      const key = `${Math.floor(world.time.now() / LINES_MS)} ${line.event} ${message}`;
      times.set(key, (times.get(key) ?? 0) + 1);
      const isOften = times.get(key) === MOST_LINES + 1 && !MAY_ALTERNATE.test(line.event);
      if (isOften || isRepeated(line))
        world.violate('nothing is said again and again', `${who}: ${line.event} ${message}`);
      checkOfFiles(world, who, line);
      if (level !== 'info') checkWarned(world, who, fields);
    },
    set: (name, labels, value) => void gauges.set(keyOf(name, labels), value),
    clear(name) {
      for (const key of gauges.keys()) if (key.startsWith(`${name} `)) gauges.delete(key);
    },
  };
  return said;
}

/** A key that may only read is refused at each change, and then reads again: ebb says both. */
const MAY_ALTERNATE = /^ebb\.project_(refused|recovered)$/;

/** What a daemon says once until it changes. */
const SAID_ONCE: ReadonlySet<string> = new Set([
  'ebb.policies_loaded',
  'ebb.policies_delayed',
  'ebb.policies_refused',
  'ebb.policy_warnings',
  'ebb.superseded',
]);

/** What is said of files names the team whose files they are, and is not said of others. */
function checkOfFiles(world: World, who: string, line: Line): void {
  const { event, owner, warnings } = line;
  const { versions } = world.files;
  if (event === 'ebb.policy_warnings' && warnings?.length === 0)
    world.violate('what is said of files is true', `${who}: no warning`);
  const lastMs = Math.max(...Object.values(versions).map((all) => all.at(-1)?.atMs ?? 0));
  if (event !== 'ebb.policies_refused' || lastMs > world.time.now() - JUST_NOW_MS) return;
  const result = parseTexts(textsNow(world));
  world.reach('owner of broken files checked');
  const broken = result.ok || !result.others ? undefined : TEAM.name;
  if (result.ok || owner !== broken)
    world.violate('what is said of files is true', `${who}: ${owner ?? 'no team'}, not ${broken ?? 'no team'}`);
}

/** Violates a rule if a daemon's gauge does not show what there is. */
export function expectGauge(
  world: World,
  { index, said }: SimDaemon,
  [name, labels, value]: readonly [name: string, labels: object, value: number],
): void {
  const shown = said.gauge(name, labels);
  world.reach('gauge checked');
  if (shown !== value)
    world.violate(
      'gauges show what there is',
      `d${index}: ${name} ${JSON.stringify(labels)} is ${shown}, not ${value}`,
    );
}

/** Every few seconds: a daemon that nothing else disturbs shows if its clock is wrong. */
export function checkClockGauge(world: World, daemon: SimDaemon): void {
  const { offsetMs, offsetSinceMs } = daemon.life;
  const isOff = Math.abs(offsetMs) > CLOCK_OFF_MS;
  const sinceMs = world.time.now() - (isOff ? SHOWN_MS : CORRECTED_MS);
  if (!isOff && offsetMs !== 0) return;
  if (Math.max(daemon.startedAtMs, offsetSinceMs) > sinceMs || hadTrouble(world, OF_STORE, sinceMs, daemon)) return;
  // A round that reads the fleet takes longer.
  if (hadTrouble(world, OF_PLATFORM, sinceMs)) return;
  expectGauge(world, daemon, ['ebb_write_blocked', { reason: 'clock_off' }, isOff ? 1 : 0]);
}

/** At the end of a quiet time nothing waits, and only a newer release blocks a daemon. */
export function checkGauges(world: World, daemon: SimDaemon, newest: number): void {
  const isOlder = daemon.version < newest;
  expectGauge(world, daemon, ['ebb_write_blocked', { reason: 'superseded' }, isOlder ? 1 : 0]);
  expectGauge(world, daemon, ['ebb_write_blocked', { reason: 'staged' }, 0]);
  expectGauge(world, daemon, ['ebb_staged_changes', {}, 0]);
  expectGauge(world, daemon, ['ebb_policy_load_success', {}, 1]);
}
