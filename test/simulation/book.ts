/** What the rules of a simulation need to remember: writes under way, what people said, and when something was lost. */

import type { ComputeSettings } from '../../src/domain/compute/compute.ts';
import type { Compute as EmulatedCompute } from '../../src/emulator/world/entities.ts';
import type { SimDaemon } from './daemon.ts';
import type { Field } from './oracle.ts';
import { type FileName, parseTexts, type SimFiles, type SimGuard, type SimValues } from './policies.ts';
import type { ToldState } from './series.ts';
import type { AcknowledgedHold, World } from './world.ts';

export const SECOND_MS = 1_000;

/** A reading shows what happened so long ago, whatever delays it. */
export const SEEN_MS = 45 * SECOND_MS;

interface Book {
  /** Those of the group, whether they run or not. */
  daemons: readonly SimDaemon[];
  /** By compute, the write whose outcome is not stored. */
  pending: Map<string, { requestId: string; atMs: number; policy?: string | undefined }>;
  /** By compute, the last change that was sent, until it takes effect or is refused: when its intent was stored. */
  onTheWay: Map<string, { requestId: string; intentAtMs: number }>;
  /** By compute, when a change last took effect for whose answer nobody waited any more. */
  lateAtMs: Map<string, number>;
  /** Requests for changes that have reached the platform. */
  arrived: Arrival[];
  /** By project, the request that waits for its answer. */
  underWay: Map<string, { daemon: SimDaemon; requestId: string }>;
  /** By hash of a policy set, the files that it was read from. */
  filesByHash: Map<string, SimFiles | 'unfinished' | undefined>;
  /** Hashes of the sets that daemons read when they started: they take the files as they are. */
  readAtStart: Set<string>;
  /** When a store was lost, or one project hidden for so long that it is forgotten: baselines may be new. */
  forgotten: { atMs: number; projectId?: string }[];
  /** What daemons were told by the source of guards. */
  told: ToldState[];
  /** Changes by ebb that have taken effect. */
  effects: Effect[];
  /** What guards have found, as it was stored. */
  harms: SimHarm[];
  /** Ids of messages that were sent. */
  messages: Set<string>;
  /** The files that the group has agreed on last, and as text. */
  registered?: string | undefined;
  registeredFiles?: SimFiles | undefined;
  /** How often daemons have asked the platform in the calm time. */
  asked: { readings: number; others: number };
  /** By name, the lease that a daemon has. */
  leases: Map<string, { daemon: SimDaemon; atMs: number }>;
  /** By project and time, how often daemons wanted to lock it. */
  passes: Map<string, number>;
  /** By policy and compute, when a slot of a restart was taken. */
  slots: Map<string, number>;
  /** By path, the change that was forbidden last, and how often in a row. */
  forbidden: Map<string, { body: string | undefined; atMs: number; count: number }>;
  /** Restarts of awake computes that were sent, with the policy that wanted each. */
  restarts: { computeId: string; policy: string; atMs: number }[];
  /** Writes that daemons have said are made. */
  ended: { computeId: string; atMs: number; latenessMs: number | undefined }[];
  /** By compute, its record as it was stored last. */
  stored: Map<string, string>;
  /** When a request for a change of a compute was last refused, or what became of it may be unknown to daemons. */
  unclear: Map<string, number>;
  /** By compute, since when its record is there, as it says. */
  first: Map<string, { firstSeenAtMs: number; enforcedSinceMs: number | undefined }>;
  /** When holds or freezes were last changed. */
  newsAtMs: number;
  /** When the group last got another set. */
  setAtMs: number;
}

export interface Arrival {
  atMs: number;
  requestId: string;
  computeId: string;
  who: string;
  asked: Partial<ComputeSettings>;
  isRestart: boolean;
  before: ComputeSettings;
  /** True if the platform has said yes. */
  isDone?: boolean;
}

export interface Effect {
  computeId: string;
  atMs: number;
  before: ComputeSettings;
  after: ComputeSettings;
  /** If it was awake; absent where a daemon may not have known. */
  wasAwake?: boolean | undefined;
}

/** A harm that was stored: a lowering that a guard takes back, or tells of. */
export interface SimHarm {
  computeId: string;
  guard: string;
  atMs: number;
  loweredAtMs: number;
  remedy: SimGuard['remedy'];
  /** Values that nothing goes below from now; and the policy that had lowered them, with its text and that of the guard, as they were. */
  floors: { field: Field; values: SimValues; by: string; terms: readonly (string | undefined)[] }[];
}

const books = new WeakMap<World, Book>();

export function bookOf(world: World): Book {
  const known = books.get(world) ?? {
    daemons: [],
    pending: new Map(),
    onTheWay: new Map(),
    lateAtMs: new Map(),
    arrived: [],
    underWay: new Map(),
    filesByHash: new Map(),
    readAtStart: new Set(),
    forgotten: [],
    told: [],
    effects: [],
    harms: [],
    messages: new Set(),
    asked: { readings: 0, others: 0 },
    leases: new Map(),
    passes: new Map(),
    slots: new Map(),
    forbidden: new Map(),
    restarts: [],
    ended: [],
    stored: new Map(),
    unclear: new Map(),
    first: new Map(),
    newsAtMs: 0,
    setAtMs: 0,
  };
  books.set(world, known);
  return known;
}

/** Holds of a compute of which somebody was told, before this place in the order of calls, that they are set. */
export function holdsNow(
  { people, time }: World,
  computeId: string,
  order = Number.POSITIVE_INFINITY,
): AcknowledgedHold[] {
  const nowMs = time.now();
  return people.holds.filter(
    (hold) => hold.computeId === computeId && hold.acknowledgedOrder < order && nowMs < hold.endedAtMs,
  );
}

/** Freezes of a project that somebody was told are set. */
export function freezesNow({ people, time }: World, projectId: string, order = Number.POSITIVE_INFINITY) {
  const nowMs = time.now();
  return people.freezes.filter(
    (one) => one.acknowledgedOrder < order && nowMs < one.endedAtMs && (one.projectId ?? projectId) === projectId,
  );
}

/** The present name of a project first, then earlier ones: one that brings new policies counts at a boundary only. */
export function namesOf({ platform, people }: World, projectId: string): string[] {
  const name = platform.platform.peek().projects.get(projectId)?.name ?? '';
  return [name, ...people.renames.filter((one) => one.projectId === projectId).map(({ from }) => from)];
}

/** Changes of a compute by anybody but ebb, without what it had at first. */
export function changesOf({ people }: World, computeId: string) {
  return people.changes.filter((one) => one.computeId === computeId).slice(1);
}

/** True if readings may have been old at some time since. */
export function wasStale({ faults }: World, sinceMs: number): boolean {
  return faults.some(({ kind, untilMs }) => kind === 'api_stale' && untilMs > sinceMs - 60 * SECOND_MS);
}

/** True if the store was lost, or went back, at some time since. */
export function wasReplaced(world: World, sinceMs: number): boolean {
  return bookOf(world).forgotten.some(({ atMs, projectId }) => atMs >= sinceMs && projectId === undefined);
}

/** True if the store was lost, or the compute's project was forgotten, at some time since. */
export function wasForgotten(world: World, computeId: string, sinceMs = 0): boolean {
  const own = computeNow(world, computeId)?.projectId;
  const isOwn = (projectId?: string) => projectId === undefined || projectId === own;
  return bookOf(world).forgotten.some(({ atMs, projectId }) => atMs >= sinceMs && isOwn(projectId));
}

/** The files that the group has agreed on: those whose hash the store has. */
export async function filesOfGroup(world: World): Promise<SimFiles | 'unfinished' | undefined> {
  const hash = (await world.store.current.generation())?.setHash;
  if (hash === undefined) return undefined;
  const { filesByHash } = bookOf(world);
  if (!filesByHash.has(hash)) filesByHash.set(hash, findFiles(world, hash));
  return filesByHash.get(hash);
}

function findFiles(world: World, hash: string): SimFiles | 'unfinished' | undefined {
  const { versions } = world.files;
  let found: SimFiles | 'unfinished' | undefined;
  const newest = (name: FileName) => versions[name].toReversed();
  for (const platform of newest('platform')) {
    for (const web of newest('web')) {
      const parsed = parseTexts({ platform: platform.text, web: web.text });
      if (!parsed.ok || parsed.set.hash !== hash) continue;
      if (platform.policies && web.policies) return { platform: platform.policies, web: web.policies };
      found = bookOf(world).readAtStart.has(hash) ? undefined : 'unfinished';
    }
  }
  return found;
}

/** When a compute was created, also if it is gone; one that was there from the beginning, long before. */
export function createdAtMs({ people }: World, computeId: string): number {
  return people.changes.find((one) => one.computeId === computeId)?.atMs ?? 0;
}

/** A compute of the platform as it is now. */
export function computeNow({ platform }: World, computeId: string): EmulatedCompute | undefined {
  return platform.platform.peek().computes.get(computeId);
}
