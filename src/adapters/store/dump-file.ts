import { open } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { Dumped } from '../../ports/store.ts';
import { StoredEntry } from './history-json.ts';
import { StoredFreeze, StoredHold } from './override-json.ts';
import { StoredRecord } from './record-json.ts';

/** Must be raised when older versions of ebb can't read a new dump. Version 1 had no usage. */
const VERSION = 2;

const Head = z.looseObject({ ebb_store_dump: z.number() });
const End = z.strictObject({ end: z.number() });
/** The end of a freeze is null, which is JSON for infinity, if the store could not read it. */
const Ends = z
  .number()
  .nullable()
  .transform((ms) => ms ?? Number.POSITIVE_INFINITY);
const DumpedFreeze = StoredFreeze.extend({ expiresAtMs: Ends });
const Line = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('hold'), hold: StoredHold }),
  z.object({ kind: z.literal('freeze'), freeze: DumpedFreeze }),
  z.object({ kind: z.literal('record'), projectId: z.string(), computeId: z.string(), record: StoredRecord }),
  z.object({ kind: z.literal('usage'), account: z.string(), unit: z.string(), bytes: z.base64() }),
  z.object({ kind: z.literal('history'), entry: StoredEntry }),
]) satisfies z.ZodType<Dumped>;

/** The file is no valid dump. The message is one line with place, problem and remedy. */
export class DumpProblem extends Error {}

/** A dump as lines of JSON: the version, the entries, and their number, which shows that the file is complete. */
export async function* dumpLines(entries: AsyncIterable<Dumped>): AsyncGenerator<string> {
  yield `${JSON.stringify({ ebb_store_dump: VERSION })}\n`;
  let count = 0;
  for await (const entry of entries) {
    count += 1;
    yield `${JSON.stringify(entry)}\n`;
  }
  yield `${JSON.stringify({ end: count })}\n`;
}

/** Throws a {@link DumpProblem} at the first invalid line. */
export async function* readDump(path: string): AsyncGenerator<Dumped> {
  const file = await open(path).catch((error) => {
    throw unreadable(path, error);
  });
  try {
    let number = 0;
    let isComplete = false;
    for await (const text of file.readLines()) {
      number += 1;
      const line = parseJson(text);
      if (number === 1) checkHead(path, line);
      else if (isComplete) throw broken(path, number, 'something comes after its last line');
      else if (End.safeParse(line).data?.end === number - 2) isComplete = true;
      else yield entryOf(path, number, line);
    }
    if (number === 0) checkHead(path, undefined);
    if (!isComplete) throw broken(path, number, 'the file ends here, before its last line');
  } catch (error) {
    throw error instanceof DumpProblem ? error : unreadable(path, error as NodeJS.ErrnoException);
  } finally {
    await file.close();
  }
}

function checkHead(path: string, line: unknown): void {
  const head = Head.safeParse(line).data;
  if (!head) throw new DumpProblem(`${path}:1: is not a dump of a store: make one with ebb store dump --out FILE`);
  const { ebb_store_dump: version } = head;
  if (version >= 1 && version <= VERSION) return;
  throw new DumpProblem(
    `${path}:1: has version ${version}, and this ebb reads versions 1 to ${VERSION}: use the ebb that wrote it`,
  );
}

function entryOf(path: string, number: number, line: unknown): Dumped {
  if (line === undefined) throw broken(path, number, 'is not JSON');
  const parsed = Line.safeParse(line);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = issue?.path.length ? `${issue.path.join('.')}: ` : '';
  throw broken(path, number, `${place}${issue?.message}`);
}

function unreadable(path: string, { code, message }: NodeJS.ErrnoException): DumpProblem {
  return new DumpProblem(`${path}: can't be read (${code ?? message}): check the path`);
}

function broken(path: string, number: number, what: string): DumpProblem {
  return new DumpProblem(`${path}:${number}: ${what}; nothing is loaded: take another dump`);
}
