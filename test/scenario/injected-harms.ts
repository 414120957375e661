/** Injected harms on virtual time: how many were found, and what became of them. */

import { responseSeconds, type Served } from '../../src/emulator/world/latency.ts';
import { EVENINGS, type Harm, harmsOf, KINDS, LARGE, MORNING, memberOf, policiesOf } from './guard-harms.ts';
import { type GuardedFleet, type Member, startGuardedFleet, type Written } from './guarded-fleet.ts';
import { compareReplay } from './replayed-fleet.ts';
import { servedBy } from './scraper.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** A Monday. Prometheus takes no samples from the future. */
const START_MS = Date.UTC(2024, 0, 1);

/** Longer than the default, since a peak may come hours after the lowering. */
const WATCH_MS = 3 * 60 * MINUTE_MS;

export interface Outcome {
  harm: Harm;
  slowAtMs?: number;
  fastAtMs?: number;
  undone: Written[];
}

export interface HarmsOptions {
  count: number;
  seed: number;
  /** So many follow after the last harm has begun, with the same policies. */
  nights: number;
  /** Each compute is scraped on all days, not only on that of its harm, and the past is kept for a replay. */
  isReplayed: boolean;
}

export async function runHarms({ count, seed, nights, isReplayed }: HarmsOptions) {
  const harms = harmsOf(count);
  const dayOf = new Map(harms.map(({ name, day }) => [name, day]));
  const fleet = await startGuardedFleet({
    ...{ seed, startMs: START_MS, watchMs: WATCH_MS, keeps: 'histogram', scrapeMs: 30_000 },
    keepsPast: isReplayed,
    members: harms.map((harm, index) => memberOf(harm, seed + index)),
    boundaries: [MORNING, ...EVENINGS],
    evenings: EVENINGS,
    leftOut: [
      [60, MORNING - 10],
      [MORNING + 10, 15 * 60],
    ],
    isScraped: (name, dayMs) => isReplayed || dayOf.get(name) === (dayMs - START_MS) / DAY_MS,
  });
  try {
    fleet.latency.add({ id: 'noise', effect: 'noise', factor: 1.3, fromMs: 0, share: 1, seed });
    const outcomes = new Map(harms.map((harm): [string, Outcome] => [harm.name, { harm, undone: [] }]));
    const days = Math.max(...harms.map(({ day }) => day)) + 1;
    let morningsMissed = 0;
    for (let day = 0; day < days + nights; day += 1) {
      if (day < days) fleet.setPolicies(policiesOf(harms, day, WATCH_MS));
      const dayMs = START_MS + day * DAY_MS;
      const look = (atMs: number) => watchOutcomes(fleet, outcomes, { atMs, dayMs });
      const morning = await fleet.runTo(dayMs + MORNING * MINUTE_MS + MINUTE_MS, look);
      morningsMissed += [...fleet.members.values()].filter(({ compute }) => compute.maxCu < LARGE.maxCu).length;
      for (const one of [...morning, ...(await fleet.runTo(dayMs + DAY_MS, look))]) {
        if (one.isUndo && isBack(one.member)) outcomes.get(one.member.options.name)?.undone.push(one);
      }
    }
    const found = await findingsOf(fleet);
    const replay = isReplayed ? await compareReplay(fleet, START_MS) : undefined;
    return { outcomes: [...outcomes.values()], found, morningsMissed, replay };
  } finally {
    await fleet.close();
  }
}

/** Notes when a compute became slow, and when it was fast again or slept. */
function watchOutcomes(
  { members }: GuardedFleet,
  outcomes: ReadonlyMap<string, Outcome>,
  { atMs, dayMs }: { atMs: number; dayMs: number },
): void {
  for (const member of members.values()) {
    const outcome = outcomes.get(member.options.name);
    if (!outcome || outcome.fastAtMs !== undefined) continue;
    const { day, evening } = outcome.harm;
    if (dayMs + evening * MINUTE_MS > atMs || START_MS + day * DAY_MS > dayMs) continue;
    const isFound = member.record.guardFinding !== undefined;
    const isSlow = slownessOf(servedBy(member, atMs));
    if (isSlow) outcome.slowAtMs ??= atMs;
    else if (isFound && isBack(member)) outcome.fastAtMs = atMs;
    else if (!isFound && isSlow === false) delete outcome.slowAtMs;
  }
}

/** Undefined while nobody waits for an answer. */
function slownessOf(served: Served): boolean | undefined {
  if (served.awakeMs === undefined || served.demandCu === 0) return undefined;
  return responseSeconds(served) * Math.log(20) > 0.4;
}

function isBack({ compute }: Member): boolean {
  return compute.maxCu >= LARGE.maxCu && compute.suspendTimeoutSeconds >= LARGE.suspendTimeoutSeconds;
}

async function findingsOf({ store }: GuardedFleet) {
  const found = new Map<string, { foundAtMs: number; badSinceMs: number }[]>();
  for (const entry of await store.history({ limit: 10_000 })) {
    if (entry.kind !== 'guard') continue;
    const name = entry.computeId?.slice('ep-'.length) ?? '';
    const record = (await store.records(`p-${name}`)).get(`ep-${name}`);
    const { badSinceMs = Number.NaN } = record?.guardFinding ?? {};
    found.set(name, [...(found.get(name) ?? []), { foundAtMs: entry.atMs, badSinceMs }]);
  }
  return found;
}

/** `for`, and 90 s. */
const LONGEST_MS = 180_000 + 90_000;
/** At most two harms of a guard are found in this time; the others wait. */
const TURN_MS = 10 * MINUTE_MS;

/** What was found later than `for` and 90 s after its first bad sample: those that waited for their turn, and all others. */
export function lateOf({ found }: Pick<Awaited<ReturnType<typeof runHarms>>, 'found'>) {
  const all = [...found].flatMap(([name, findings]) => findings.map((one) => ({ name, ...one })));
  const late = all.filter(({ foundAtMs, badSinceMs }) => foundAtMs - badSinceMs > LONGEST_MS);
  const guardOf = (name: string) => name.slice(0, name.lastIndexOf('-'));
  const hasWaited = ({ name, foundAtMs, badSinceMs }: (typeof all)[number]) => {
    const earlier = all.filter((one) => guardOf(one.name) === guardOf(name) && one.foundAtMs < foundAtMs);
    return earlier.filter((one) => one.foundAtMs > badSinceMs + LONGEST_MS - TURN_MS).length >= 2;
  };
  return { waited: late.filter(hasWaited), late: late.filter((one) => !hasWaited(one)) };
}

/** A line for each kind, sleep and remedy. */
export function harmLines({
  outcomes,
  found,
}: Pick<Awaited<ReturnType<typeof runHarms>>, 'outcomes' | 'found'>): string[] {
  return KINDS.flatMap((kind) =>
    [false, true].flatMap((isAsleep) =>
      (['undo_with_restart', 'undo'] as const).map((remedy) => {
        const own = outcomes.filter(
          ({ harm }) => harm.kind === kind && harm.isAsleep === isAsleep && harm.remedy === remedy,
        );
        const foundOnce = own.filter(({ harm }) => found.get(harm.name)?.length === 1);
        const toFound = foundOnce.map(({ harm, slowAtMs = Number.NaN }) => {
          return ((found.get(harm.name)?.[0]?.foundAtMs ?? Number.NaN) - slowAtMs) / MINUTE_MS;
        });
        const toFast = own.map(({ slowAtMs = Number.NaN, fastAtMs = Number.NaN }) => (fastAtMs - slowAtMs) / MINUTE_MS);
        const undone = own.filter(({ undone: all }) => all.length === 1).length;
        const restarted = own.filter(({ undone: all }) => all.some(({ action }) => action.disconnects)).length;
        return `${kind}${isAsleep ? ', lowered asleep' : ''}, ${remedy}: ${own.length} harms, ${foundOnce.length} found once, ${undone} undone once, ${restarted} with a restart; minutes from the first slow request until found ${spread(toFound)}, until fast again ${spread(toFast)}`;
      }),
    ),
  );
}

function spread(values: readonly number[]): string {
  const sorted = values.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(1) ?? '-';
  return `${at(0)} / ${at(0.5)} / ${at(1)}${sorted.length < values.length ? ` (${values.length - sorted.length} not)` : ''}`;
}
