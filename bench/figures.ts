import Table from 'cli-table3';

/** The median of `runs` timed calls, in milliseconds, after one that isn't counted. */
export async function medianMs(runs: number, work: () => void | Promise<void>): Promise<number> {
  await work();
  const times: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const startedMs = performance.now();
    await work();
    times.push(performance.now() - startedMs);
  }
  return percentile(times, 0.5);
}

/** The value below which such a share of all lies, from 0 to 1; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  for (const row of rows) table.push([...row]);
  process.stdout.write(`${table.toString()}\n`);
}
