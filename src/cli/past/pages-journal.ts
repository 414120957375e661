/**
 * Stores on this machine the pages of operations that a run of a command has read. The next run continues an interrupted one. After a complete
 * run, forecasts use its pages for a day. The next run uses them for five minutes only, since it needs newer operations.
 */
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoggedOperation, ReadingState } from '../../app/fleet/read-operations.ts';
import type { KeptOperations } from '../../app/usage/kept-operations.ts';
import { parseJson } from '../../common/result.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../domain/time/units.ts';

const VERSION = 2;
const FILE = 'operations-being-read.jsonl';
const READ_FILE = 'operations-read.jsonl';
/** Older pages are read again. */
const OLDEST_MS = DAY_MS;
/** The next run uses the pages of a complete run for this long. */
const WHOLE_VALID_MS = 5 * MINUTE_MS;

type Past = KeptOperations['operations'][number];

interface JournalPage {
  projectId: string;
  /** The state after this page. */
  state: ReadingState;
  operations: LoggedOperation[];
}

export interface PagesJournal {
  /** The end of the time that the earlier run read, in milliseconds since the epoch. Undefined if there is no run to continue. */
  readonly earlierToMs: number | undefined;
  /** The state in which the earlier run left each project. */
  readonly states: ReadonlyMap<string, ReadingState>;
  /** Keeps a page. If the disk is full or read-only, this run can't be continued later. */
  add(page: JournalPage): void;
  /** Must be called when everything was read: marks the pages, if there are any, as those of a complete run. */
  end(): void;
}

/** Opens the journal. `onPage` gets each page of an earlier run with the same parameters, in the order of reading. */
export async function openJournal(options: {
  folder: string;
  /** The parameters of the run. Pages of a run with other parameters are not used. */
  asked: { apiUrl: string; group: string; days: number };
  nowMs: number;
  /** Ignores the pages of a complete run. */
  readsAgain?: boolean | undefined;
  onPage: (page: JournalPage) => void;
}): Promise<PagesJournal> {
  const { folder, nowMs, onPage, asked, readsAgain = false } = options;
  const states = new Map<string, ReadingState>();

  async function earlierRun(path: string, oldestMs: number): Promise<number | undefined> {
    let toMs: number | undefined;
    for await (const line of linesOf(path)) {
      const entry = parseJson(line);
      if (toMs === undefined) {
        toMs = toMsOf(entry, asked, { nowMs, oldestMs });
        if (toMs === undefined) return undefined;
      } else if (isPage(entry) && entry.state.pages === (states.get(entry.projectId)?.pages ?? 0) + 1) {
        states.set(entry.projectId, entry.state);
        onPage(entry);
      }
    }
    return toMs;
  }

  let path = join(folder, FILE);
  let earlierToMs = await earlierRun(path, OLDEST_MS);
  if (earlierToMs === undefined && !readsAgain) {
    const whole = join(folder, READ_FILE);
    earlierToMs = await earlierRun(whole, WHOLE_VALID_MS);
    if (earlierToMs !== undefined) path = whole;
  }
  const begin = () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(path, `${JSON.stringify({ version: VERSION, asked, toMs: nowMs })}\n`, { mode: 0o600 });
  };
  // The last line may have been cut off.
  let isKept = succeeds(earlierToMs === undefined ? begin : () => appendFileSync(path, '\n'));
  let hasPages = states.size > 0;
  return {
    earlierToMs,
    states,
    add(page) {
      hasPages = true;
      if (isKept) isKept = succeeds(() => appendFileSync(path, `${JSON.stringify(page)}\n`));
    },
    end() {
      // A run that read nothing must not replace what an earlier one has read.
      succeeds(() => (hasPages ? renameSync(path, join(folder, READ_FILE)) : rmSync(path)));
    },
  };
}

/**
 * Returns the operations that a complete run has read within the last day, by project. Undefined if there is no such run, or if it had another
 * API URL or group. Projects whose operations it took from the store of daemons are left out.
 */
export async function operationsReadLately(options: {
  folder: string;
  asked: { apiUrl: string; group: string };
  nowMs: number;
}): Promise<{ operations: Map<string, KeptOperations>; readAtMs: number } | undefined> {
  const { folder, asked, nowMs } = options;
  let readAtMs: number | undefined;
  const read = new Map<string, KeptOperations & { operations: Past[] }>();
  for await (const line of linesOf(join(folder, READ_FILE))) {
    const entry = parseJson(line);
    if (readAtMs === undefined) {
      const toMs = toMsOf(entry, asked, { nowMs, oldestMs: OLDEST_MS });
      if (toMs === undefined) return undefined;
      readAtMs = wholeSecond(toMs);
    } else if (isPage(entry)) {
      const { projectId, state } = entry;
      const { operations = [] } = read.get(projectId) ?? {};
      operations.push(...pastOperations(entry));
      const end = state.cursor === undefined ? 'complete' : 'days';
      read.set(projectId, { readAtMs, oldestMs: state.oldestMs ?? 0, end, operations });
    }
  }
  return readAtMs === undefined ? undefined : { operations: read, readAtMs };
}

function pastOperations({ projectId, operations }: JournalPage): Past[] {
  return operations.map((one) => ({ ...one, projectId, createdAtMs: wholeSecond(one.createdAtMs) }));
}

/** Operations that daemons store have whole seconds, too. */
function wholeSecond(ms: number): number {
  return ms - (ms % SECOND_MS);
}

function succeeds(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

/** The lines of a file; none if there is no file, or a run beside this one has just deleted it. */
async function* linesOf(path: string): AsyncGenerator<string> {
  const file = await open(path).catch(() => undefined);
  if (file) yield* file.readLines({ encoding: 'utf8' });
}

/** The end of a run's operations, from the first line of its file; undefined if the run is too old, or had other parameters. */
function toMsOf(
  head: unknown,
  asked: object,
  { nowMs, oldestMs }: { nowMs: number; oldestMs: number },
): number | undefined {
  const { version, asked: before, toMs } = (head ?? {}) as { version?: unknown; asked?: object | null; toMs?: unknown };
  const parameters = new Map(Object.entries(before ?? {}));
  const isSame = Object.entries(asked).every(([name, value]) => parameters.get(name) === value);
  return version === VERSION && isSame && typeof toMs === 'number' && toMs > nowMs - oldestMs && toMs <= nowMs
    ? toMs
    : undefined;
}

/** False for a line that was cut off. */
function isPage(entry: unknown): entry is JournalPage {
  const { projectId, state, operations } = (entry ?? {}) as Partial<JournalPage>;
  return typeof projectId === 'string' && typeof state?.pages === 'number' && Array.isArray(operations);
}
