import { type Engine, EngineAwayError, type EngineState } from '../../ports/engine.ts';

interface GuardOptions {
  /** The message of an outage. */
  message(error: Error): string;
  isAway(error: Error): boolean;
}

/** The parts of an engine that keep its drivers' many ways of saying "not now" from its users. */
export function createGuard({ message, isAway }: GuardOptions): Pick<Engine, 'guard' | 'isAway'> {
  function clear(error: unknown): unknown {
    return error instanceof Error && isAway(error) ? new EngineAwayError(message(error), { cause: error }) : error;
  }

  return {
    isAway,
    guard: <Port extends object>(port: Port): Port => {
      const guarded = Object.entries(port).map(([name, method]) => [
        name,
        async (...args: unknown[]) => {
          try {
            return await method(...args);
          } catch (error) {
            throw clear(error);
          }
        },
      ]);
      return Object.fromEntries(guarded) as Port;
    },
  };
}

export interface StateChanges {
  /** Tells the listeners if this is another state than the last one. */
  report(state: EngineState): void;
  onStateChange(listener: (state: EngineState) => void): void;
  /** Stops reports: failures after the engine was closed are no news. */
  end(): void;
}

/** Starts as up, since an engine that doesn't open is an error and no engine. */
export function createStateChanges(): StateChanges {
  const listeners: ((state: EngineState) => void)[] = [];
  let up = true;
  let ended = false;
  return {
    end: () => {
      ended = true;
    },
    report: (state) => {
      if (ended || state.up === up) return;
      up = state.up;
      for (const listener of listeners) listener(state);
    },
    onStateChange: (listener) => {
      listeners.push(listener);
    },
  };
}
