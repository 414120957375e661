/** The slowest of many draws. Times are printed, never asserted: how much is done is what is bounded. */

/** Best of so many, so that a busy machine, a collection of garbage or code that is not yet compiled is no finding. */
const MEASURED_AGAIN = 9;

interface Measured<P> {
  name: string;
  boundMs: number;
  /** So many draws are not measured: until then code is compiled while it runs. */
  warmUp: number;
  ask(prepared: P): unknown;
}

export function slowest<P>({ name, boundMs, warmUp, ask }: Measured<P>) {
  let draws = 0;
  let longerOnce = 0;
  let longer = 0;
  let most = { ms: 0, prepare: undefined as (() => P) | undefined, of: '' };
  return {
    /** Asks about the first; `prepare` makes equal things, of which nothing is known yet. */
    try(first: P, prepare: () => P, drawn: unknown): void {
      draws += 1;
      const firstMs = timed(first, ask);
      if (draws <= warmUp || firstMs <= Math.min(most.ms, boundMs)) return;
      if (firstMs > boundMs) longerOnce += 1;
      const ms = again(prepare, ask, firstMs);
      if (ms > boundMs) longer += 1;
      if (ms > most.ms) most = { ms, prepare, of: JSON.stringify(drawn) };
    },
    tell(): void {
      const { ms, prepare, of } = most;
      const bestMs = prepare ? again(prepare, ask, ms) : 0;
      const over = `${longerOnce} of ${draws} draws took longer than ${boundMs} ms once, ${longer} each of ${MEASURED_AGAIN + 1} times`;
      const text = of.replaceAll(/("days":\[)[^\]]{80,}/g, '$1…').slice(0, 1000);
      process.stderr.write(`slowest ${name}: ${bestMs.toFixed(1)} ms of CPU; ${over}: ${text}\n`);
    },
  };
}

function again<P>(prepare: () => P, ask: (prepared: P) => unknown, firstMs: number): number {
  let bestMs = firstMs;
  for (let run = 0; run < MEASURED_AGAIN; run += 1) bestMs = Math.min(bestMs, timed(prepare(), ask));
  return bestMs;
}

/** Milliseconds of CPU that the process used. */
function timed<P>(prepared: P, ask: (prepared: P) => unknown): number {
  const begun = process.cpuUsage();
  ask(prepared);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}
