/** Judges what was told in a week by what the emulator saw. */
import { groupBy } from '../../src/domain/grouping.ts';
import type { NotificationKind } from '../../src/domain/notifications/notification.ts';
import { LEAD_MS, MINUTE_MS, TEAMS } from './operators-week.ts';
import type { Change, Deed, Told, Week } from './told-week.ts';

const DAY_MS = 24 * 60 * MINUTE_MS;
/** `at_once` spreads restarts over this time at most. */
const SPREAD_MS = 20 * MINUTE_MS;
/** A round in which news are found, and one in which they are sent. */
const ROUNDS_MS = 2 * MINUTE_MS;

/** Kinds that are never folded or delayed: what has disconnected clients, undos, degraded computes, refused keys. */
const NEVER_FOLDED: ReadonlySet<NotificationKind> = new Set<NotificationKind>([
  ...(['connections_dropped', 'raised_by_critical', 'guard', 'degraded', 'key_refused'] as const),
]);

const isUnplanned = ({ message }: Told) =>
  message.kind === 'raised_by_critical' ||
  (message.kind === 'connections_dropped' && message.text.includes('not announced'));

const teamOf = (computeId: string) => TEAMS.find((team) => computeId.startsWith(`ep-${team}-`)) ?? '';

/** Clients that a change by ebb has disconnected. */
interface Drop {
  atMs: number;
  computeId: string;
  connections: number;
}

export interface Verdict {
  drops: number;
  /** Listed in time as computes that the change restarts. */
  inTime: number;
  /** Listed in time as computes that the change restarts if they are awake then. */
  ifAwake: number;
  /** Announced with the real lead, since nothing was to be seen before. */
  late: number;
  unplanned: number;
  /** Of both receivers of a team. */
  untold: string[];
  untrue: string[];
  /** Of a receiver of a team, by day: those that may be folded. */
  most: number;
  /** By team, its messages a day: other ones, and those that are never folded. */
  table: Map<string, { other: number; never: number }[]>;
}

export function judge(week: Week, fromMs: number, toMs: number): Verdict {
  const facts = factsOf(week);
  const verdict: Verdict = {
    ...{ drops: 0, inTime: 0, ifAwake: 0, late: 0, unplanned: 0, most: 0 },
    untold: [],
    untrue: [],
    table: new Map(),
  };
  for (const drop of facts.drops) {
    verdict.drops += 1;
    const of = ['chat', 'pager'].map((to) => howTold(facts, drop, `${teamOf(drop.computeId)}-${to}`));
    const [worst] = of.toSorted((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
    if (worst === undefined || worst === 'not') verdict.untold.push(lineOf(drop, `${drop.connections} clients`));
    else verdict[worst] += 1;
  }
  for (const told of week.told) {
    const why = untruthOf(facts, told);
    if (why !== undefined)
      verdict.untrue.push(`${lineOf(told, told.receiver)} ${told.message.kind}: ${told.message.text}: ${why}`);
  }
  for (const team of TEAMS) {
    const days = Array.from({ length: Math.ceil((toMs - fromMs) / DAY_MS) }, (_, day) => {
      const own = week.told.filter(
        ({ receiver, atMs }) => receiver === `${team}-chat` && Math.floor((atMs - fromMs) / DAY_MS) === day,
      );
      const never = own.filter(({ message }) => NEVER_FOLDED.has(message.kind)).length;
      return { other: own.length - never, never };
    });
    verdict.table.set(team, days);
    verdict.most = Math.max(verdict.most, ...days.map(({ other }) => other));
  }
  return verdict;
}

const ORDER = ['not', 'unplanned', 'late', 'ifAwake', 'inTime'] as const;

const lineOf = ({ atMs, computeId = '' }: { atMs: number; computeId?: string }, what: string) =>
  `${new Date(atMs).toISOString()} ${computeId} ${what}`;

interface Facts extends Week {
  drops: Drop[];
  /** Changes that were not made by hand. */
  own: Change[];
  /** True if the compute was awake at that instant. */
  wasAwake(computeId: string, atMs: number): boolean;
}

function factsOf(week: Week): Facts {
  const isByHand = ({ atMs, computeId }: { atMs: number; computeId: string }) =>
    week.deeds.some(
      (deed) => deed.what === 'manual' && deed.computeId === computeId && Math.abs(atMs - deed.atMs) < 10_000,
    );
  const drops = week.events.filter((event) => event.type === 'dropped').filter((drop) => !isByHand(drop));
  const states = groupBy(
    week.events.filter((event) => event.type === 'state'),
    ({ computeId }) => computeId,
  );
  return {
    ...{ ...week, drops },
    own: week.changes.filter((change) => !isByHand(change)),
    wasAwake: (computeId, atMs) => states.get(computeId)?.findLast((one) => one.atMs <= atMs)?.state === 'active',
  };
}

/** How a receiver was told of a disconnect. */
function howTold(facts: Facts, drop: Drop, receiver: string): (typeof ORDER)[number] {
  const own = facts.told.filter((one) => one.receiver === receiver);
  const before = own.filter((one) => one.atMs < drop.atMs && announces(one, drop));
  const inTime = before.filter(
    ({ atMs, message }) => Date.parse(message.changes?.from ?? '') - atMs >= LEAD_MS - ROUNDS_MS,
  );
  if (inTime.some((one) => names(one, drop))) return 'inTime';
  if (inTime.length > 0) return 'ifAwake';
  const first = before.at(0);
  if (first && !couldBeSeen(facts, drop, Date.parse(first.message.changes?.from ?? '') - LEAD_MS)) return 'late';
  const after = own.some(
    (one) =>
      one.message.compute === drop.computeId && isUnplanned(one) && Math.abs(one.atMs - drop.atMs) < 5 * MINUTE_MS,
  );
  return after ? 'unplanned' : 'not';
}

/** True if the message lists a change of the compute for that time; one that sleeps is listed as not disconnecting. */
function announces({ message: { kind, changes } }: Told, { atMs, computeId }: Drop): boolean {
  if (kind !== 'change_coming' || !changes) return false;
  if (atMs < Date.parse(changes.from) || atMs > Date.parse(changes.to) + SPREAD_MS) return false;
  return changes.list.some(({ compute }) => compute === computeId);
}

/** True if the message lists the compute as one that the change restarts. */
function names({ message }: Told, { computeId }: Drop): boolean {
  return message.changes?.list.some(({ compute, disconnects }) => compute === computeId && disconnects) === true;
}

/** True if at that instant it was to be seen that this would disconnect: the compute was awake, and nobody has done anything since. */
function couldBeSeen({ wasAwake, deeds }: Facts, { computeId, atMs }: Drop, instantMs: number): boolean {
  const isDone = deeds.some(
    (deed) => concerns(deed, computeId) && deed.atMs > instantMs - ROUNDS_MS && deed.atMs < atMs,
  );
  return wasAwake(computeId, instantMs) && !isDone;
}

const concerns = (deed: Deed, computeId: string) => deed.computeId === undefined || deed.computeId === computeId;

/** What is wrong with a message; undefined if all of it happened. */
function untruthOf(facts: Facts, told: Told): string | undefined {
  const { atMs, message } = told;
  const { kind, compute, text, owner } = message;
  const near = (ms: number, withinMs = ROUNDS_MS) => ms <= atMs && atMs - ms <= withinMs;
  const is = (isTrue: boolean, why: string) => (isTrue ? undefined : why);
  switch (kind) {
    case 'change_coming':
      if (!message.changes) {
        const isNamed = ({ computeId: id }: Change) =>
          text.includes(`, ${id} first`) || text.includes(`late: ${id} at `);
        const isFirst = (one: Change) => isNamed(one) && near(one.atMs);
        return is(facts.own.some(isFirst), 'nothing came late');
      }
      return untruthOfComing(facts, told);
    case 'connections_dropped': {
      const isOf = (one: Change) => one.computeId === compute && near(one.atMs);
      const restart = facts.own.findLast((one) => isOf(one) && facts.wasAwake(one.computeId, one.atMs - 1));
      if (!restart) return 'it was not restarted';
      const drop = { ...restart, connections: 0 };
      const isAnnounced = (one: Told) => names(one, drop) && announces(one, drop);
      return is(
        !isUnplanned(told) || !facts.told.some((one) => one.atMs < restart.atMs && isAnnounced(one)),
        'it was announced',
      );
    }
    case 'raised_by_critical':
      return is(
        facts.own.some((one) => one.computeId === compute && near(one.atMs)),
        'it was not raised',
      );
    case 'manual_change':
      return is(
        text.includes('0.5-2') &&
          facts.deeds.some(
            (one) => one.what === 'manual' && one.computeId === compute && near(one.atMs, 32 * MINUTE_MS),
          ),
        'nobody has changed it',
      );
    case 'freeze':
      return is(
        facts.deeds.some((one) => one.what === 'freeze' && near(one.atMs)),
        'nobody has frozen it',
      );
    case 'hold':
      return is(
        facts.deeds.some((one) => one.what === 'hold' && near(one.atMs) && text.includes(one.computeId ?? '?')),
        'nobody has held it',
      );
    case 'staged':
      return is(
        facts.deeds.some((one) => one.what === 'edit' && near(one.atMs, 10 * MINUTE_MS)),
        'nothing was edited',
      );
    case 'digest': {
      const from = Date.parse(text.match(/week of (\S+),/)?.[1] ?? '');
      const own = facts.own.filter(
        (one) => teamOf(one.computeId) === owner && one.atMs >= from && one.atMs < from + 7 * DAY_MS,
      );
      const computes = new Set(own.map((one) => one.computeId)).size;
      return is(
        text.includes(own.length === 0 ? 'nothing was changed' : `${own.length} changes`) &&
          (own.length === 0 || text.includes(`of ${computes} computes`)),
        `${own.length} changes of ${computes} computes`,
      );
    }
    default:
      return `nothing of kind ${kind} happened`;
  }
}

/** All that are listed are changed, but for those that people have since changed, held or frozen, or that an edit concerns. */
function untruthOfComing(facts: Facts, told: Told): string | undefined {
  const { atMs, message, receiver } = told;
  const { changes, owner } = message;
  if (!changes) return 'it has no counts';
  const toMs = Date.parse(changes.to) + SPREAD_MS;
  const isIn = (ms: number) => ms >= atMs && ms <= toMs;
  const isOwn = ({ computeId }: { computeId: string }) => teamOf(computeId) === owner;
  const changed = new Set(facts.own.filter((one) => isOwn(one) && isIn(one.atMs)).map((one) => one.computeId));
  // A second message follows for computes that the first did not list: each counts its own.
  const others = facts.told.filter((one) => one !== told && one.receiver === receiver);
  const isOfOthers = (drop: Drop) => !announces(told, drop) && others.some((one) => announces(one, drop));
  const drops = facts.drops.filter((drop) => isOwn(drop) && isIn(drop.atMs) && !isOfOthers(drop));
  const dropped = new Set(drops.map((one) => one.computeId));
  const touched = facts.deeds.filter((deed) => isIn(deed.atMs));
  if (touched.some(({ computeId }) => computeId === undefined)) return undefined;
  if (dropped.size > changes.computes) return `${dropped.size} were disconnected`;
  const listed = new Set(changes.list.map(({ compute }) => compute));
  if (listed.size !== changes.computes) return `${listed.size} are listed`;
  const kept = [...listed].filter((id) => !changed.has(id) && !touched.some((deed) => concerns(deed, id)));
  return kept.length > 0 ? `not changed: ${kept.join()}` : undefined;
}
