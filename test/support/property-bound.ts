import { Worker } from 'node:worker_threads';
import fc from 'fast-check';

/** How long one property may be tried, in seconds; EBB_PROPERTY_SECONDS=3600 for a long run. */
export const PROPERTY_SECONDS = Number(process.env.EBB_PROPERTY_SECONDS ?? 30);

interface PropertyBound {
  /** After this time no further run of a property is begun. */
  limitMs: number;
  /** A single run that takes longer than this ends the process: nothing else can stop code that never comes back. */
  runLimitMs: number;
  tell(line: string): void;
  /** What is being tried, for messages. */
  nameOf(): string;
}

/** Bounds the time of every property test of this process, and tells how far those came that the bound stopped. */
export function boundProperties(bound: PropertyBound): void {
  for (const plugin of boundsOf(bound)) fc.installGlobalPlugin(plugin);
}

/** The same for one property. */
export function boundsOf({ limitMs, runLimitMs, tell, nameOf }: PropertyBound): fc.Plugin<unknown>[] {
  const reporting: fc.Plugin<unknown> = () => reportingFrom(Date.now());
  const reportingFrom = (begunAtMs: number): fc.PluginInstance<unknown> => ({
    decorateRun: (run) => (value) => {
      watchdog(runLimitMs).begin(nameOf());
      const result = run(value);
      if (!(result instanceof Promise)) watchdog(runLimitMs).end();
      return result instanceof Promise ? result.finally(() => watchdog(runLimitMs).end()) : result;
    },
    onAllRunsComplete: ({ interrupted, numRuns, runConfiguration, seed }) => {
      // Another bound, a shorter one, may have stopped it.
      if (!interrupted || Date.now() - begunAtMs < limitMs) return;
      const planned = runConfiguration.numRuns ?? 100;
      tell(`stopped after ${numRuns} of ${planned} runs (${limitMs / 1000} s, seed ${seed}): ${nameOf()}`);
    },
  });
  return [fc.interruptAfterTimeLimit(limitMs), reporting];
}

/** A thread that ends the process once a run takes too long. It looks at a place in memory that both share. */
const WATCH = `
  const { workerData: { shared, limitMs } } = require('node:worker_threads');
  const state = new BigInt64Array(shared, 0, 1);
  setInterval(() => {
    const sinceMs = Number(Atomics.load(state, 0));
    if (sinceMs === 0 || Date.now() - sinceMs < limitMs) return;
    const name = Buffer.from(new Uint8Array(shared, 8)).toString().replaceAll('\\0', '');
    require('node:fs').writeSync(2, 'a single run took longer than ' + limitMs / 1000 + ' s: ' + name + '\\n');
    process.kill(process.pid, 'SIGKILL');
  }, Math.min(1000, limitMs / 4));
`;
const NAME_BYTES = 1000;

let running: { begin(name: string): void; end(): void } | undefined;

function watchdog(limitMs: number) {
  if (running) return running;
  const shared = new SharedArrayBuffer(8 + NAME_BYTES);
  const state = new BigInt64Array(shared, 0, 1);
  new Worker(WATCH, { eval: true, execArgv: [], workerData: { shared, limitMs } }).unref();
  let named = '';
  running = {
    begin(name) {
      if (name !== named) new Uint8Array(shared, 8).fill(0).set(Buffer.from(name).subarray(0, NAME_BYTES));
      named = name;
      Atomics.store(state, 0, BigInt(Date.now()));
    },
    end: () => void Atomics.store(state, 0, 0n),
  };
  return running;
}
