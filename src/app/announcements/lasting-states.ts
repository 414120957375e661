/** Notifications of states such as an outage: one once a state has lasted, and one once it is over, whichever daemon leads. */
import type { Notification } from '../../domain/notifications/notification.ts';
import { HOUR_MS, isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { sharedDocument } from '../shared-documents.ts';

/** No notification is made this long after a beginning or an end, in milliseconds: the outbox may have forgotten that it was sent. */
const NEWS_MS = HOUR_MS;

/** A state found within this time after the daemon's first check, in milliseconds, may have begun before that check. */
const FIRST_CHECKS_MS = MINUTE_MS;

/** A state that has lasted. Instants are milliseconds since the epoch. */
export interface LastingState {
  name: string;
  sinceMs: number;
  /** Set if it may have begun before `sinceMs`. */
  isSinceAtLeast?: true;
  foundAtMs: number;
  /** Its description when it was found. */
  text: string;
  /** The owners whose computes it concerned when it was found: they are told of its beginning and of its end. */
  owners?: readonly string[];
  /** Set if it was over for a while since it was found, too short to count. */
  hadBreak?: true;
  /** When it ended; absent if the daemon that reports the end has not seen it. */
  overSinceMs?: number;
  /** When the end was found. */
  endedAtMs?: number;
}

/** A state that ends for so long and then goes on is said to have had a break, in milliseconds. */
const SHORTEST_BREAK_MS = MINUTE_MS;

interface LastingStateDeps {
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

interface LastingStateOptions {
  /** Its collection in the store, and the version of its form there. */
  collection: string;
  version: number;
  /** A state counts as begun, or as over, once it has been seen for this long, in milliseconds. */
  settledMs: number;
  /** Like `settledMs`, for the beginning alone, if that is told earlier than the end. */
  beginsAfterMs?(name: string): number;
  /** The present states: their descriptions by name. */
  present(): ReadonlyMap<string, string>;
  /** Since when a state has been present or over, milliseconds since the epoch. If undefined, the instant of the first check that saw it counts. */
  sinceMs?(name: string): number | undefined;
  /** The owners whose computes a state concerns: they are told besides the receivers of the whole fleet. */
  concernedOwners?(name: string): readonly string[];
  /** True if an open state is reported again, now with this description. */
  isToldAgain?(state: LastingState, text: string): boolean;
  /** True while it is not known whether a state is present: it counts as neither begun nor over. */
  isUnknown?(name: string): boolean;
  /** True if nothing more is reported under a name, such as that of a deleted account. */
  isGone?(name: string): boolean;
  /** Returns the notification that a state has begun; or that it is over, if `endedAtMs` is given. */
  notificationOf(state: LastingState, endedAtMs?: number): Notification;
}

export interface StateNotifications {
  /** Notes the present states. Called in each round, also by daemons that don't lead. */
  notePresent(): void;
  /** Stores the states, so that another leader reports the same, and returns the notifications. */
  read(): Promise<Notification[]>;
  /** Reads the stored states, and restores those that the store has lost. For daemons that don't lead. */
  learn(): Promise<void>;
}

export function createLastingStates(deps: LastingStateDeps, options: LastingStateOptions): StateNotifications {
  const { store, clock } = deps;
  const {
    collection,
    version,
    present,
    isGone = () => false,
    isUnknown = () => false,
    isToldAgain = () => false,
  } = options;
  const document = sharedDocument<readonly LastingState[]>(collection, 'all', version);
  /** States by name. */
  const seen = new Map<string, Seen>();
  let firstCheckMs: number | undefined;
  /** The stored states as last read, with those that the store has lost since. */
  let lastKnown: readonly LastingState[] = [];

  /** Opens the stored states, and adds those that the store has lost. */
  async function openAll() {
    const stored = await document.open(store);
    const value = stored.value ?? [];
    const lost = lastKnown.filter(({ name }) => value.every((one) => one.name !== name));
    lastKnown = [...value, ...lost].filter(({ name }) => !isGone(name));
    return { stored, hasLost: lost.length > 0, before: lastKnown };
  }

  function stateNow(name: string, last: LastingState | undefined): LastingState | undefined {
    const nowMs = clock.now();
    const found: Seen = seen.get(name) ?? { text: undefined, sinceMs: nowMs };
    const { text, sinceMs } = found;
    const isOpen = last !== undefined && last.endedAtMs === undefined;
    if (nowMs - sinceMs < settlingMs(options, name, text)) return last;
    if (text === undefined) return isOpen ? { ...ended(last, found), endedAtMs: nowMs } : last;
    if (isOpen) return isToldAgain(last, text) ? { ...last, foundAtMs: nowMs, text } : last;
    return { name, ...beginning(sinceMs), foundAtMs: nowMs, text, ...ownersOf(options, name) };
  }

  function sinceMsOf(name: string): number {
    return options.sinceMs?.(name) ?? clock.now();
  }

  function beginning(sinceMs: number): Pick<LastingState, 'sinceMs' | 'isSinceAtLeast'> {
    const mayBeEarlier = firstCheckMs !== undefined && sinceMs - firstCheckMs < FIRST_CHECKS_MS;
    return { sinceMs, ...(mayBeEarlier && { isSinceAtLeast: true }) };
  }

  return {
    notePresent() {
      const presentTexts = present();
      firstCheckMs ??= clock.now();
      for (const name of new Set([...seen.keys(), ...presentTexts.keys()])) {
        const text = presentTexts.get(name);
        const before = seen.get(name);
        if (isUnknown(name)) seen.delete(name);
        else if (text !== undefined || before?.text !== undefined)
          seen.set(name, seenAfter(before, { text, sinceMs: sinceMsOf(name) }));
      }
    },
    async read() {
      const { stored, before } = await openAll();
      // States that another leader has found are watched from now on.
      for (const { name } of before)
        if (!seen.has(name) && !isUnknown(name)) seen.set(name, { text: present().get(name), sinceMs: clock.now() });
      const stateBefore = new Map(before.map((state) => [state.name, state]));
      const after = [...new Set([...stateBefore.keys(), ...seen.keys()])].flatMap(
        (name) => stateNow(name, stateBefore.get(name)) ?? [],
      );
      // The replacement fails if another daemon leads now and has stored states.
      const hasChanged = JSON.stringify(after) !== JSON.stringify(stored.value ?? []);
      if (hasChanged && !(await stored.replace(after))) return [];
      lastKnown = after;
      // States that were reported before are among them: the outbox queues an id only once, unless the store has lost its data.
      const told = after.map((state) => notificationFor(options, state));
      return told.filter(({ atMs }) => clock.now() - atMs < NEWS_MS);
    },
    async learn() {
      const { stored, before, hasLost } = await openAll();
      if (hasLost) await stored.replace(before);
    },
  };
}

/** What a daemon has seen of a state. */
interface Seen {
  /** Its description; undefined while it is not present. */
  text: string | undefined;
  /** Since when it is present, or is not. */
  sinceMs: number;
  /** True if this daemon has seen the end itself. */
  isEndSeen?: boolean;
  /** When its last break of {@link SHORTEST_BREAK_MS} or longer began, after which it went on. */
  breakAtMs?: number;
}

function seenAfter(before: Seen | undefined, now: Pick<Seen, 'text' | 'sinceMs'>): Seen {
  if (!before) return now;
  if (now.text === undefined) return { ...before, ...now, isEndSeen: true };
  if (before.text !== undefined) return { ...before, ...now, sinceMs: Math.min(before.sinceMs, now.sinceMs) };
  const isBreak = now.sinceMs - before.sinceMs >= SHORTEST_BREAK_MS;
  return { ...before, ...now, ...(isBreak && { breakAtMs: before.sinceMs }) };
}

function ended(state: LastingState, { sinceMs, isEndSeen, breakAtMs = 0 }: Seen): LastingState {
  const hadBreak = breakAtMs >= state.foundAtMs;
  return { ...state, ...(hadBreak && { hadBreak: true as const }), ...(isEndSeen && { overSinceMs: sinceMs }) };
}

function ownersOf({ concernedOwners }: LastingStateOptions, name: string): Pick<LastingState, 'owners'> {
  const owners = concernedOwners?.(name);
  return owners ? { owners } : {};
}

function notificationFor({ notificationOf }: LastingStateOptions, { owners, ...state }: LastingState): Notification {
  return { ...notificationOf(state, state.endedAtMs), ...(owners && { concernedOwners: owners }) };
}

function settlingMs(
  { settledMs, beginsAfterMs = () => settledMs }: LastingStateOptions,
  name: string,
  text: string | undefined,
): number {
  return text === undefined ? settledMs : beginsAfterMs(name);
}

/** Texts for a state's beginning and end; the second is empty unless the reporting daemon has seen the end. */
export function describeSpan(state: LastingState): { since: string; over: string } {
  const { sinceMs, isSinceAtLeast, hadBreak, overSinceMs } = state;
  return {
    since: `since ${isSinceAtLeast ? 'at least ' : ''}${isoInstant(sinceMs)}${hadBreak ? ', except for some minutes' : ''}`,
    over: overSinceMs === undefined ? '' : ` since ${isoInstant(overSinceMs)}`,
  };
}
