/** Opens the fleet for commands that only read it: from the readings of daemons, the control API, or a snapshot. */

import { readFile, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { afterHerds, type BusyTime } from '../adapters/control-api/after-herds.ts';
import { type AnswerCache, createAnswerCache } from '../adapters/control-api/answer-cache.ts';
import { createReadingsApi } from '../adapters/control-api/readings-api.ts';
import { createSnapshotApi } from '../adapters/control-api/snapshot.ts';
import { HERD_NEAR_MS } from '../app/fleet/at-boundary.ts';
import { withBranches } from '../app/fleet/branches.ts';
import { FEWEST_PROJECTS_KEPT } from '../app/fleet/read-fleet.ts';
import {
  isAbout,
  lacksList,
  type RecentFleet,
  readReadings,
  recentFleet,
  type SharedFleet,
  withAppliedSince,
} from '../app/readings/read-readings.ts';
import type { SharedReading } from '../app/readings/reading.ts';
import type { FleetSource } from '../app/situation/read-situation.ts';
import {
  daemonRuns,
  FLEET_FACTS,
  herdsFromDaemon,
  herdsInStore,
  readingsFromDaemon,
  recordsInStore,
  type StoredSource,
  usageFromDaemon,
} from '../app/situation/stored-source.ts';
import {
  branchesOf,
  OPERATION_DAYS,
  readKeptOperations,
  spanOf,
  withKeptOperations,
} from '../app/usage/kept-operations.ts';
import type { StoredUsage } from '../app/usage/usage-account.ts';
import { errorCode } from '../common/errors.ts';
import type { Result } from '../common/result.ts';
import { WAITS } from '../common/waits.ts';
import { spanText } from '../domain/time/age.ts';
import { DAY_MS, HOUR_MS, msOfIso } from '../domain/time/units.ts';
import { earliest, latest } from '../domain/time/windows/opening.ts';
import type { ControlApiError } from '../ports/control-api.ts';
import type { Engine } from '../ports/engine.ts';
import type { Operator } from '../ports/operator.ts';
import type { Store } from '../ports/store.ts';
import type { Settings } from '../settings/settings.ts';
import { openCommandBudget, patient } from './command-budget.ts';
import { daemonOnFolder } from './daemon-file.ts';
import { explainApiError } from './explain-api-error.ts';
import { openStoreToRead } from './store.ts';

export interface ReadingOptions {
  settings: Settings;
  /** A snapshot to read instead of the control API, without a key. */
  fleetFile?: string | undefined;
  /** The instant that counts as now for a snapshot; the real time by default. A compute without `created_at` is a year old at this instant. */
  nowMs?: number;
  /** The engine of the daemons' group, if the caller has it open; see {@link openCommandBudget}. */
  engine?: Engine | undefined;
  /** Reads from the control API instead of the readings that daemons have stored. */
  live?: boolean | undefined;
  /** False if only usage and operations are wanted, which the readings of daemons don't contain. */
  needsFleet?: boolean;
  /**
   * The only wanted project, by its id, its name or one of its computes. If daemons have read it, no other project is requested. The project
   * itself is requested with `live`, or if its stored reading is older than {@link FRESH_MS}; without `live`, the stored reading replaces a failed
   * answer.
   */
  subject?: string | undefined;
  /** The source of stored readings, if the caller has it open. Otherwise the store is opened, or its daemon is asked. */
  shared?: SharedSource;
  /** Also uses stored operations that go back to this instant, milliseconds since the epoch. */
  operationsSinceMs?: number | undefined;
  /** Also uses the share of `api_reserve`. For a few requests that a person waits for, so that busy daemons don't delay them. */
  usesReserve?: boolean;
}

/** A store, or a daemon that has one open. */
export interface SharedSource extends Pick<StoredSource, 'readings' | 'records' | 'herds' | 'daemonRuns'> {
  /** Includes stored operations; absent if they aren't needed. */
  usage?: StoredUsage | undefined;
}

export interface Reading extends FleetSource {
  /** The answers of the control API that commands have cached. Absent for a single `subject`, for stored readings and for a fleet file. */
  cache?: Pick<AnswerCache, 'usage' | 'noteListed'>;
  close(): Promise<void>;
}

/** The size limit of fleet files, so that a wrong file doesn't fill the memory. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Opens a fleet for a command that only reads: a fleet file, recent readings of daemons, or the control API, for which `NEON_API_KEY` suffices.
 * Sends no request yet.
 */
export async function openForReading(options: ReadingOptions): Promise<Result<Reading>> {
  const { fleetFile, live, subject, needsFleet = true } = options;
  if (fleetFile !== undefined) return openFile(fleetFile, options.nowMs ?? Date.now());
  const isApiOnly = subject === undefined && (live || !needsFleet);
  const shared = isApiOnly ? undefined : await openReadings(options);
  return shared ? { ok: true, value: shared } : openApi(options);
}

/** A stored reading of the only wanted project is used for this long, in milliseconds. */
const FRESH_MS = 10_000;

/** Opens the readings of daemons. Undefined unless the store has a recent list of the projects, too. */
async function openReadings(options: ReadingOptions): Promise<Reading | undefined> {
  const { settings, shared, live, subject } = options;
  // If the store can't be read, there are no readings. The command reports the error where it needs the store.
  const read = (source: SharedSource) => readShared(source, options);
  const found = await (shared ? read(shared) : withShared(settings, read)).catch(() => undefined);
  if (!found) return undefined;
  const { recent, operations, subjects, atMs } = found;
  // The subject may be a project that daemons have not read, or a compute of such a project.
  if (subject !== undefined && subjects.length === 0 && (live || recent.unread.length > 0)) return undefined;
  const openLive = async () => {
    const opened = await openApi(subject === undefined ? options : { ...options, usesReserve: true });
    if (opened.ok) {
      // Otherwise cached answers about these projects, such as names of branches, would not be used.
      opened.value.cache?.noteListed(recent.readings.map(({ project }) => project));
      return { ok: true as const, value: opened.value.api };
    }
    return { ok: false as const, error: { code: 'unauthorised' as const, route: '', message: opened.problem } };
  };
  // If daemons keep all wanted operations, these and the names of branches, which are stored with them, are not requested.
  const asksBranches = operations?.coversSpan !== true;
  const stored = { projects: recent.readings, unread: recent.unread, asksBranches };
  const api = createReadingsApi(stored, openLive, (askLive) =>
    operations
      ? withKeptOperations(operations.byProject, operations.coversSpan ? async () => NOT_STORED : askLive)
      : { operationsFrom: askLive },
  );
  const explain = (error: ControlApiError) => (error.route === '' ? error.message : explainApiError(settings, error));
  let unreadSubject: string | undefined;
  const ids = subjects.map(({ project }) => project.projectId);
  const isOld = subjects.some(({ readAtMs }) => atMs - readAtMs > FRESH_MS);
  if (live) api.readAgain(ids);
  else if (isOld) {
    api.readAgain(ids, (error) => {
      unreadSubject = explain(error);
    });
  }
  return {
    api,
    isLive: true,
    facts: new Map(),
    explain,
    close: () => api.close(),
    ...(!live && {
      isStored: true,
      // If the subject was read again, nothing shown is from the store, so no note is needed.
      note: () => (isOld && unreadSubject === undefined ? undefined : noteAbout(recent, operations, unreadSubject)),
    }),
  };
}

interface SharedRead {
  recent: RecentFleet;
  operations?: StoredOperations;
  /** The readings of the only wanted project. */
  subjects: SharedReading[];
  /** When the readings were read, by the store's clock, milliseconds since the epoch. */
  atMs: number;
}

/** Reads the fleet as daemons have stored it, with the changes that ebb has applied since. */
async function readShared(
  source: SharedSource,
  { settings, operationsSinceMs, subject, live }: ReadingOptions,
): Promise<SharedRead | undefined> {
  const expected = { accounts: settings.accounts.map(({ name }) => name), apiUrl: settings.apiUrl };
  const fleet = live ? await source.readings() : await waitForReadings(source, expected);
  const found = fleet && recentFleet(fleet, expected);
  if (!found) return undefined;
  const { atMs } = fleet;
  const named = found.readings.filter((reading) => subject !== undefined && isAbout(reading, subject));
  const wanted = named.length > 0 ? named : found.readings;
  const records = await source.records(wanted.map(({ project }) => project.projectId));
  const operations =
    operationsSinceMs === undefined || !source.usage
      ? undefined
      : {
          byProject: await readKeptOperations(source.usage, { sinceMs: operationsSinceMs, nowMs: atMs }),
          nowMs: atMs,
          coversSpan: operationsSinceMs >= atMs - (OPERATION_DAYS * DAY_MS + HOUR_MS),
        };
  const readings = found.readings
    .map((reading) => withAppliedSince(reading, records))
    .map((reading) => (operations ? withBranchesOf(reading, operations.byProject) : reading));
  return {
    recent: { ...found, readings },
    subjects: readings.filter((reading) => subject !== undefined && isAbout(reading, subject)),
    atMs,
    ...(operations && { operations }),
  };
}

/** A command stops waiting for a daemon that has stored no further reading for this long, in real milliseconds. */
const STALLED_MS = 25_000;
const POLL_EVERY_MS = 1_000;

/** Waits for a daemon that is reading the fleet: another reading would take requests that the daemon needs. */
async function waitForReadings(
  source: SharedSource,
  expected: { accounts: readonly string[]; apiUrl: string },
): Promise<SharedFleet | undefined> {
  let fleet = await source.readings();
  if (!fleet || !lacksList(fleet, expected) || !(await source.daemonRuns())) return fleet;
  WAITS.publish('waiting until the daemon has read the fleet; --live reads the API (Ctrl-C stops)');
  let sinceMonotonicMs = performance.now();
  while (fleet && lacksList(fleet, expected) && performance.now() - sinceMonotonicMs < STALLED_MS) {
    await delay(POLL_EVERY_MS);
    const before: number = fleet.readings.size;
    fleet = await source.readings(true);
    if (fleet?.readings.size !== before) sinceMonotonicMs = performance.now();
  }
  return fleet;
}

/** The answer for operations that daemons have not stored yet. They are not requested, since daemons will soon read them. */
const NOT_STORED = {
  ok: false,
  error: {
    code: 'invalid',
    route: '',
    message:
      'daemons have not read the operations of all projects yet, which they do in the first minutes after a start; --live reads them now',
  },
} as const;

/** The operations that daemons have stored. */
interface StoredOperations {
  /** The encoded operations of each project; see {@link decodeOperations}. */
  byProject: ReadonlyMap<string, Uint8Array>;
  nowMs: number;
  /** True if daemons keep operations for the whole wanted span, although those of some projects may not be stored yet. */
  coversSpan: boolean;
}

/** Adds the branches that daemons have stored with the operations to a reading without branches. */
function withBranchesOf(reading: SharedReading, byProject: ReadonlyMap<string, Uint8Array>): SharedReading {
  const bytes = byProject.get(reading.project.projectId);
  if (!bytes || reading.computes.every(({ branchName }) => branchName !== undefined)) return reading;
  const branches = branchesOf(bytes);
  if (branches === 'refused') return { ...reading, branchesRefused: true };
  return branches ? { ...reading, computes: withBranches(reading.computes, branches) } : reading;
}

function noteAbout(
  { listedMs, oldestMs, readings }: RecentFleet,
  operations: StoredOperations | undefined,
  unreadSubject: string | undefined,
): string {
  const listed = `as of ${spanText(listedMs)} ago, from ebb's store`;
  const fleet = `${listed} (the oldest reading of a project is from ${spanText(oldestMs)} ago)`;
  const problem = unreadSubject === undefined ? [] : [`it can't be read now: ${unreadSubject}`];
  return [fleet, ...operationsNote(readings, operations), ...problem, '--live reads the API'].join('; ');
}

function operationsNote(readings: readonly SharedReading[], operations: StoredOperations | undefined): string[] {
  if (!operations) return [];
  const { byProject, nowMs, coversSpan } = operations;
  const withComputes = readings.filter(({ computes }) => computes.length > 0);
  const instants = withComputes.flatMap(({ project }) => {
    const bytes = byProject.get(project.projectId);
    return (bytes && spanOf(bytes)?.readAtMs) ?? [];
  });
  const unread = withComputes.length - instants.length;
  const newestMs = latest(instants, (ms) => ms) ?? 0;
  const oldestMs = earliest(instants, (ms) => ms) ?? 0;
  const age = `operations as of ${spanText(nowMs - newestMs)} to ${spanText(nowMs - oldestMs)} ago`;
  const lacking = coversSpan
    ? `operations and branch names of ${unread} of ${withComputes.length} projects are not stored yet`
    : `operations of ${unread} of ${withComputes.length} projects are read from the API`;
  return [...(instants.length > 0 ? [age] : []), ...(unread > 0 ? [lacking] : [])];
}

/** Reads from the daemons' store. An embedded store is read through the daemon that has it open. Undefined if neither can be reached. */
async function withShared<T>(
  settings: Settings,
  read: (source: SharedSource) => Promise<T | undefined>,
): Promise<T | undefined> {
  if (settings.queue.kind === 'embedded') {
    const daemon = await daemonOnFolder(settings.queue);
    return daemon && read(sharedByDaemon(daemon));
  }
  const opening = await openStoreToRead(settings);
  if (!opening.ok || !('opened' in opening)) return undefined;
  const { store, close } = opening.opened;
  try {
    return await read(sharedInStore(store));
  } finally {
    await close();
  }
}

export function sharedInStore(store: Store): SharedSource {
  return {
    readings: () => readReadings(store),
    records: recordsInStore(store),
    herds: () => herdsInStore(store),
    daemonRuns: () => daemonRuns(store),
    usage: store,
  };
}

export function sharedByDaemon(daemon: Operator): SharedSource {
  return {
    readings: () => readingsFromDaemon(daemon),
    records: async () => (await FLEET_FACTS.records.readFromDaemon(daemon)) ?? new Map(),
    herds: () => herdsFromDaemon(daemon),
    usage: usageFromDaemon(daemon),
    daemonRuns: async () => true,
  };
}

/** Opens the control API. A read of the whole fleet also uses the answers that commands have cached. */
async function openApi(options: ReadingOptions): Promise<Result<Reading>> {
  const { settings, engine, usesReserve = false, subject, live = false } = options;
  // Loaded on use: the HTTP client takes a tenth of a command's time, and most read what daemons have stored.
  const { NO_METRICS, openControlApi, patienceOf, readKeysAtStart } = await import('./control-api.ts');
  const keys = readKeysAtStart(settings.accounts, 'read');
  if (!keys.ok) return keys;
  const clock = systemClock();
  const shared = await openCommandBudget({ settings, clock, engine, usesReserve });
  const patience = patienceOf(settings);
  const budget = subject === undefined ? patient(shared.budget, clock) : shared.budget;
  const hide = () => {};
  const client = openControlApi({ settings, clock, patience, budget, hide, purpose: 'read', metrics: NO_METRICS });
  const api = { ...client, close: () => client.close().finally(shared.close) };
  const explain = (error: ControlApiError) => explainApiError(settings, error);
  const reading = { isLive: true, facts: new Map(), explain };
  if (subject !== undefined) return { ok: true, value: { ...reading, api, close: () => api.close() } };
  const accounts = settings.accounts.map(({ name, organization }) => [name, organization]);
  const waiting = afterHerds(api, { busyTimes: await busyTimes(options), clock, onWait: announceWait });
  const cache = createAnswerCache({
    api: waiting,
    folder: settings.stateDir,
    place: JSON.stringify([settings.apiUrl, accounts]),
    now: () => clock.now(),
    usesCache: !live,
    fewestProjects: FEWEST_PROJECTS_KEPT,
  });
  const note = () => {
    const ageMs = cache.ageMs();
    return ageMs === undefined ? undefined : `as of ${spanText(ageMs)} ago, as a command read it; --live reads the API`;
  };
  return { ok: true, value: { ...reading, api: cache.api, cache, note, close: () => cache.api.close() } };
}

/** The times around herds: boundaries of many computes, which daemons expect. None if the daemons' store can't be read. */
async function busyTimes({ settings, shared }: ReadingOptions): Promise<BusyTime[]> {
  const read = (source: SharedSource) => source.herds();
  const herds = await (shared ? read(shared) : withShared(settings, read)).catch(() => undefined);
  return (herds ?? []).map(({ account, first, last, computes }) => ({
    fromMs: msOfIso(first) - HERD_NEAR_MS,
    untilMs: msOfIso(last) + HERD_NEAR_MS,
    reason: `${computes} computes of account ${account} change at ${first}, and need the rate limit`,
  }));
}

/** Tells people about a wait when it begins, since it takes minutes. */
function announceWait({ untilMs, reason }: BusyTime): void {
  WAITS.publish(`waiting for ${spanText(untilMs - Date.now())}: ${reason} (Ctrl-C stops)`);
}

async function openFile(file: string, nowMs: number): Promise<Result<Reading>> {
  const text = await readText(file);
  if (!text.ok) return text;
  const snapshot = createSnapshotApi({ text: text.value, name: file, nowMs });
  if (!snapshot.ok) return { ok: false, problem: `fleet file ${snapshot.problem}` };
  const { api } = snapshot.value;
  const explain = ({ message }: ControlApiError) => `${file}: ${message}`;
  return { ok: true, value: { ...snapshot.value, isLive: false, explain, close: () => api.close() } };
}

async function readText(file: string): Promise<Result<string>> {
  try {
    if ((await stat(file)).size > MAX_BYTES) return { ok: false, problem: `fleet file ${file}: is larger than 64 MiB` };
    return { ok: true, value: await readFile(file, 'utf8') };
  } catch (error) {
    const code = errorCode(error);
    return { ok: false, problem: `cannot read the fleet file ${file} (${code}); check the path and its permissions` };
  }
}
