import type { RulesSource } from '../../ports/rules.ts';
import type { DaemonContext } from '../context.ts';
import { pauseQueues } from '../group/pause-queues.ts';
import { advanceRules, takeReading } from './activate.ts';
import { compareGenerations, showSets } from './write-permission.ts';

/** Keeps a daemon's rules as they are written, and as its group has them. */
export interface Reloading {
  /** Reads everything anew, whether it has changed or not. Resolves when it is done. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Looks every `rhythm.rulesMs` whether rules have changed, whether what was staged may come into force, and what the group has in
 * force. One round at a time.
 */
export function startReloading(context: DaemonContext, source: RulesSource | undefined): Reloading {
  const stop = new AbortController();
  let last = Promise.resolve();
  const leaveToOthers = pauseQueues(context);
  let needRestart = '';

  async function readAnew(from: RulesSource, isAsked: boolean): Promise<void> {
    const reading = await from.read();
    if (reading.ok) {
      const names = reading.needRestart.join(', ');
      if (names !== '' && names !== needRestart) sayNeedRestart(context, reading.needRestart);
      needRestart = names;
    }
    await takeReading(context, reading, { isAsked, signal: stop.signal });
  }

  async function round(isAsked: boolean): Promise<void> {
    if (stop.signal.aborted) return;
    await context.storeClock.tooFarOff();
    if (source && (isAsked || (await source.changed()))) await readAnew(source, isAsked);
    await advanceRules(context, stop.signal);
    await compareGenerations(context);
  }

  function enqueue(isAsked: boolean): Promise<void> {
    last = last.then(async () => {
      await context.runInBackground('reading of policies', () => round(isAsked));
      leaveToOthers();
      showSets(context);
    });
    return last;
  }

  leaveToOthers();
  const rounds = context.clock.every(context.rhythm.rulesMs, () => enqueue(false));
  return {
    reload: () => enqueue(true),
    async close() {
      stop.abort();
      await rounds.close();
      await last;
    },
  };
}

function sayNeedRestart({ telemetry }: DaemonContext, settings: readonly string[]): void {
  const message = `changed settings count only after a restart: ${settings.join(', ')}`;
  telemetry.log.warn({ event: 'ebb.restart_needed', settings }, message);
}
