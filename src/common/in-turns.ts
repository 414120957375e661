import { setImmediate as nextTurn } from 'node:timers/promises';

/** Entries of one turn: with the costliest selector, or a thousand ordinary freezes, these take some 15 ms. */
const PER_TURN = 50;

/** As `map`, but other work, such as the renewal of leases, gets a turn in between. */
export async function mapInTurns<T, Mapped>(all: readonly T[], of: (one: T) => Mapped): Promise<Mapped[]> {
  const mapped: Mapped[] = [];
  for (let from = 0; from < all.length; from += PER_TURN) {
    if (from > 0) await nextTurn();
    mapped.push(...all.slice(from, from + PER_TURN).map(of));
  }
  return mapped;
}

/** As `filter`, in the same way. */
export async function filterInTurns<T>(all: readonly T[], test: (one: T) => boolean): Promise<T[]> {
  const found = await mapInTurns(all, test);
  return all.filter((_, index) => found[index]);
}

/** The UTF-8 of `JSON.stringify` of a plain object, whose lists are written in the same way. */
export async function jsonInTurns(document: object): Promise<Uint8Array<ArrayBuffer>> {
  const written: Buffer[] = [];
  for (const [key, value] of Object.entries(document)) {
    const text: string | undefined = Array.isArray(value) ? '' : JSON.stringify(value);
    if (text === undefined) continue;
    written.push(Buffer.from(`${written.length === 0 ? '{' : ','}${JSON.stringify(key)}:${text}`));
    if (Array.isArray(value)) written.push(await listInTurns(value));
  }
  return Buffer.concat([...written, Buffer.from(written.length === 0 ? '{}' : '}')]);
}

async function listInTurns(list: readonly unknown[]): Promise<Buffer> {
  const items = await mapInTurns([...list.entries()], ([index, one]) =>
    Buffer.from(`${index === 0 ? '' : ','}${JSON.stringify(one) ?? 'null'}`),
  );
  return Buffer.concat([Buffer.from('['), ...items, Buffer.from(']')]);
}
