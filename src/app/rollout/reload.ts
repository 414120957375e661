import type { RulesSource } from '../../ports/rules.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground } from '../background.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import { type PauseQueuesDeps, pauseQueues } from '../group/pause-queues.ts';
import { type ActivateDeps, advanceRules } from './activate.ts';
import { type CompareGenerationsDeps, compareGenerations } from './generations.ts';
import { refreshLeaderDecisions } from './leader-decisions.ts';
import { createTakeOver } from './take-over.ts';
import { takeDelayed, takeReading } from './take-reading.ts';
import { type ShowSetsDeps, showSets } from './write-permission.ts';

/** Keeps a daemon's rules as they are written, and as its group has them. */
export interface Reloading {
  /** Reads everything again, whether it has changed or not. Resolves when it is done. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

export interface ReloadDeps extends ActivateDeps, CompareGenerationsDeps, ShowSetsDeps, PauseQueuesDeps {
  sets: ActivateDeps['sets'];
  store: ActivateDeps['store'];
  storeClock: StoreClock;
  runInBackground: RunInBackground;
  /** Between two checks of the files of the policies, and of what the group's store says of them, in real milliseconds. */
  rhythm: ActivateDeps['rhythm'] & { rulesMs: number };
}

/**
 * Looks every `rhythm.rulesMs` whether rules have changed, whether what was staged may become current, and what the group has in
 * force. One round at a time.
 */
export function startReloading(deps: ReloadDeps, source: RulesSource | undefined): Reloading {
  const stop = new AbortController();
  let last = Promise.resolve();
  const leaveToOthers = pauseQueues(deps);
  const takeOver = createTakeOver(deps);
  let needRestart = '';

  async function readAgain(from: RulesSource, isAsked: boolean): Promise<void> {
    const reading = await from.read();
    if (reading.ok) {
      const names = reading.needRestart.join(', ');
      if (names !== '' && names !== needRestart) logNeedsRestart(deps, reading.needRestart);
      needRestart = names;
    }
    await takeReading(deps, reading, { isAsked, signal: stop.signal });
  }

  async function round(isAsked: boolean): Promise<void> {
    if (stop.signal.aborted) return;
    await deps.storeClock.tooFarOff();
    await refreshLeaderDecisions(deps);
    if (source && (isAsked || (await source.changed()))) await readAgain(source, isAsked);
    await takeDelayed(deps, stop.signal);
    await advanceRules(deps, stop.signal);
    await compareGenerations(deps);
    await takeOver(stop.signal);
  }

  function enqueue(isAsked: boolean): Promise<void> {
    last = last.then(async () => {
      await deps.runInBackground('reload', () => round(isAsked));
      leaveToOthers();
      showSets(deps);
    });
    return last;
  }

  leaveToOthers();
  const rounds = deps.clock.every(deps.rhythm.rulesMs, () => enqueue(false));
  return {
    reload: () => enqueue(true),
    async close() {
      stop.abort();
      await rounds.close();
      await last;
    },
  };
}

function logNeedsRestart({ telemetry }: { telemetry: Telemetry }, settings: readonly string[]): void {
  const message = `changed settings count only after a restart: ${settings.join(', ')}`;
  telemetry.log.warn({ event: 'ebb.restart_needed', settings }, message);
}
