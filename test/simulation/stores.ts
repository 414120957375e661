/** The store of a daemon or of a person: with its troubles, and with the rules that look at what is stored. */

import type { Store } from '../../src/ports/store.ts';
import { bookOf, filesOfGroup, wasForgotten } from './book.ts';
import { checkNeeded, checkOutdated, noteTaken } from './calm.ts';
import { latencyMs, type SimDaemon } from './daemon.ts';
import { harmIn, noteHarm } from './guards.ts';
import type { Life } from './life.ts';
import { checkTold, noteUnclear } from './records.ts';
import type { World } from './world.ts';
import { checkIntent, checkRecord, checkSet } from './writes.ts';

/** So long a call may take just before which something happens: long enough for a command, too short for a lease to end. */
const LONGEST_MEETING_MS = 600;

/** The store of one daemon: slow, away, or silent after it has done what was asked, when there is such a trouble. */
export function storeOf(world: World, name: string, life: Life, daemon?: SimDaemon): Store {
  const { index } = daemon ?? { index: -1 };
  const fault = (kind: Parameters<World['faultsAt']>[0]) => world.faultsAt(kind, index);

  function fail(method: string, args: unknown[], message: string): never {
    if (RECORDS.test(method)) noteUnclear(world, String(args[1]));
    throw new Error(message);
  }

  /** What it has stored just before it died is not sent. */
  function noteKilled(method: string, args: unknown[]): void {
    if (life.isKilled && RECORDS.test(method)) noteUnclear(world, String(args[1]));
  }

  function noteChange(method: string, args: unknown[], result: unknown): void {
    noteKilled(method, args);
    if (/(Hold|Freeze)$/.test(method)) bookOf(world).newsAtMs = world.time.now();
    if (/Generation$/.test(method)) bookOf(world).setAtMs = world.time.now();
    if (args[0] === 'daemons') return;
    world.note(`${name} ${method} ${short(args[0])} ${short(args[1])} -> ${short(result)}`);
  }

  async function ask({ method, place, isChange, isRecord }: Port, args: unknown[]): Promise<unknown> {
    world.reach(place);
    const isMet = daemon !== undefined && world.onCall(momentOf(method, args), String(args[1]));
    const who = `${name} ${method} ${args[0]}`;
    await life.pass(
      isMet ? world.diceFor(who).between(0, LONGEST_MEETING_MS) : latencyMs(world, who, fault('store_slow')?.by),
    );
    if (fault('store_down')) fail(method, args, 'the store is away');
    const order = world.next();
    // Another daemon may register a set before this one has its answer.
    const files = isRecord ? filesOfGroup(world) : undefined;
    const result = await (Reflect.get(world.store.current, method) as (...own: unknown[]) => Promise<unknown>)(...args);
    if (isChange) noteChange(method, args, result);
    if (daemon) await checkStored(world, daemon, { method, args, result, order, files });
    else noteByPerson(world, method, args);
    // It may have died while the rules were checked.
    noteKilled(method, args);
    const isSilent = isChange && fault('store_unanswered') && world.diceFor(who).is(0.5);
    await life.pass(latencyMs(world, who, fault('store_slow')?.by));
    if (isSilent) fail(method, args, 'the store did not answer');
    return result;
  }

  const methods = Object.keys(world.store.current).map((method) => {
    const port = portOf(method);
    return [method, (...args: unknown[]) => ask(port, args)];
  });
  return { ...Object.fromEntries(methods), close: async () => {} } as Store;
}

/** What is known of a method, once for all of its calls. */
function portOf(method: string) {
  return { method, place: `port store.${method}`, isChange: CHANGING.test(method), isRecord: RECORDS.test(method) };
}
type Port = ReturnType<typeof portOf>;

/** What a command stores is not a daemon's: it is only known to be another record. */
function noteByPerson(world: World, method: string, [, computeId]: unknown[]): void {
  if (method === 'putRecord') bookOf(world).stored.delete(String(computeId));
}

/** Records are looked at as they are stored, however they come there. */
async function checkStored(
  world: World,
  daemon: SimDaemon,
  call: {
    method: string;
    args: unknown[];
    result: unknown;
    order: number;
    files: ReturnType<typeof filesOfGroup> | undefined;
  },
): Promise<void> {
  const { method, args, result, order, files } = call;
  noteTaken(world, daemon, call);
  // What is deleted is not there any more: a daemon that still knows a project which another one has forgotten rightly writes its record back.
  if (method === 'deleteRecord' && result) bookOf(world).stored.delete(String(args[1]));
  if (result === 'outdated') checkOutdated(world, daemon);
  if (method === 'raiseGeneration' || method === 'restoreGeneration') return checkSet(world, daemon, method);
  const isStored = (method === 'putIntent' && result === 'stored') || (method === 'putRecord' && result === true);
  if (!isStored) return;
  const [projectId, computeId, record] = args as Parameters<Store['putRecord']>;
  // After a loss of the store records are written back, with what was pending.
  const harm = harmIn(args);
  if (harm) await noteHarm(world, daemon, record, harm);
  const { intent } = record;
  const isKnown = bookOf(world).pending.get(computeId)?.requestId === intent?.requestId;
  if (method === 'putRecord') checkNeeded(world, `d${daemon.index}`, args);
  else bookOf(world).stored.set(computeId, JSON.stringify(record));
  const isIntent =
    method === 'putIntent' || (intent && !isKnown && !wasForgotten(world, computeId, world.plan.startMs));
  checkRecord(world, computeId, record);
  checkTold(world, `d${daemon.index}`, computeId, record);
  if (isIntent) checkIntent(world, daemon, { projectId, computeId, record, order, files: await files });
}

/** The name of a call, by what it stores where that matters. */
function momentOf(method: string, args: readonly unknown[]): string {
  if (method === 'replaceDocument' && args[0] === 'guard-watches') return 'putWatch';
  return method === 'putRecord' && harmIn(args) ? 'putHarm' : method;
}

const RECORDS = /^(putIntent|putRecord)$/;

const CHANGING = /^(putIntent|putRecord|put|delete|approve|raise|restore|take)/;

function short(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
