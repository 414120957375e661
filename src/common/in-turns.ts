import { chunksOf } from './chunks.ts';

interface Turns {
  /** Resolves after other waiting work of the process has run. */
  nextTurn(): Promise<void>;
}

/** 50 entries take about 15 ms, either with the costliest selector or with a thousand ordinary freezes. */
const ENTRIES_PER_TURN = 50;

/** Like `map`, but other work, such as the renewal of leases, gets a turn in between. */
export async function mapInTurns<T, Mapped>(
  all: readonly T[],
  map: (entry: T) => Mapped,
  turns: Turns,
): Promise<Mapped[]> {
  const mapped: Mapped[] = [];
  for (const some of chunksOf(all, ENTRIES_PER_TURN)) {
    if (mapped.length > 0) await turns.nextTurn();
    mapped.push(...some.map(map));
  }
  return mapped;
}

/** Like `filter`, in turns. */
export async function filterInTurns<T>(all: readonly T[], test: (entry: T) => boolean, turns: Turns): Promise<T[]> {
  const accepted = await mapInTurns(all, test, turns);
  return all.filter((_, index) => accepted[index]);
}

/** `JSON.stringify` of a plain object, as UTF-8. Properties that are arrays are converted in turns. */
export async function jsonInTurns(document: object, turns: Turns): Promise<Uint8Array<ArrayBuffer>> {
  const written: Buffer[] = [];
  for (const [key, value] of Object.entries(document)) {
    const text: string | undefined = Array.isArray(value) ? '' : JSON.stringify(value);
    if (text === undefined) continue;
    written.push(Buffer.from(`${written.length === 0 ? '{' : ','}${JSON.stringify(key)}:${text}`));
    if (Array.isArray(value)) written.push(await listInTurns(value, turns));
  }
  return Buffer.concat([...written, Buffer.from(written.length === 0 ? '{}' : '}')]);
}

async function listInTurns(list: readonly unknown[], turns: Turns): Promise<Buffer> {
  const itemText = ([index, one]: [number, unknown]) =>
    Buffer.from(`${index === 0 ? '' : ','}${JSON.stringify(one) ?? 'null'}`);
  const items = await mapInTurns([...list.entries()], itemText, turns);
  return Buffer.concat([Buffer.from('['), ...items, Buffer.from(']')]);
}
