/** Calls `work` for every item, at most `limit` at a time, in order of start. Rejects with the first rejection. */
export async function mapConcurrently<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = queue.next(); !next.done; next = queue.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: limit }, lane));
}
