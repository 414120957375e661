/** Keeps the pages of operations that a run has read on this machine until it ends, so that the next run can continue an interrupted one. */
import { appendFileSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoggedOperation, ReadingState } from '../../app/fleet/read-operations.ts';
import { parseJson } from '../../common/result.ts';
import { DAY_MS } from '../../domain/time/units.ts';

const VERSION = 1;
const FILE = 'operations-being-read.jsonl';
/** Older pages are read again. */
const OLDEST_MS = DAY_MS;

interface JournalPage {
  projectId: string;
  /** The state after this page. */
  state: ReadingState;
  operations: LoggedOperation[];
}

export interface PagesJournal {
  /** The end of the log of the earlier run, milliseconds since the epoch; undefined if there is none to continue. */
  readonly earlierToMs: number | undefined;
  /** The state in which the earlier run left each project. */
  readonly states: ReadonlyMap<string, ReadingState>;
  /** Keeps a page. If the disk is full or read-only, this run can't be continued later. */
  add(page: JournalPage): void;
  /** Deletes the pages, once everything was read. */
  forget(): void;
}

/** Opens the journal. `onPage` gets each page of an earlier run with the same parameters, in the order of reading. */
export async function openJournal(options: {
  folder: string;
  /** The parameters of the run: with others, reading starts over. */
  asked: { apiUrl: string; group: string; days: number };
  nowMs: number;
  onPage: (page: JournalPage) => void;
}): Promise<PagesJournal> {
  const { folder, nowMs, onPage } = options;
  const path = join(folder, FILE);
  const asked = JSON.stringify(options.asked);
  const states = new Map<string, ReadingState>();
  let earlierToMs: number | undefined;
  for await (const line of linesOf(path)) {
    const entry = parseJson(line);
    if (earlierToMs === undefined) {
      earlierToMs = toMsOf(entry, asked, nowMs);
      if (earlierToMs === undefined) break;
    } else if (isPage(entry) && entry.state.pages === (states.get(entry.projectId)?.pages ?? 0) + 1) {
      states.set(entry.projectId, entry.state);
      onPage(entry);
    }
  }
  let hasFolder = true;
  const begin = () => {
    hasFolder = mkdirSync(folder, { recursive: true, mode: 0o700 }) === undefined;
    writeFileSync(path, `${JSON.stringify({ version: VERSION, asked, toMs: nowMs })}\n`, { mode: 0o600 });
  };
  // The last line may have been cut off.
  let isKept = succeeds(earlierToMs === undefined ? begin : () => appendFileSync(path, '\n'));
  return {
    earlierToMs,
    states,
    add(page) {
      if (isKept) isKept = succeeds(() => appendFileSync(path, `${JSON.stringify(page)}\n`));
    },
    forget() {
      succeeds(() => rmSync(path, { force: true }));
      // Fails if the folder has other files by now.
      if (!hasFolder) succeeds(() => rmdirSync(folder));
    },
  };
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

function toMsOf(head: unknown, asked: string, nowMs: number): number | undefined {
  const { version, asked: before, toMs } = (head ?? {}) as Record<string, unknown>;
  const isSame = version === VERSION && before === asked && typeof toMs === 'number';
  return isSame && toMs > nowMs - OLDEST_MS && toMs <= nowMs ? toMs : undefined;
}

/** False for a line that was cut off. */
function isPage(entry: unknown): entry is JournalPage {
  const { projectId, state, operations } = (entry ?? {}) as Partial<JournalPage>;
  return typeof projectId === 'string' && typeof state?.pages === 'number' && Array.isArray(operations);
}
