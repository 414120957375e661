import type { EngineState } from '../../ports/engine.ts';

export interface StateChanges {
  /** Tells the listeners if this is another state than the last one. */
  report(state: EngineState): void;
  onStateChange(listener: (state: EngineState) => void): void;
  /** Says nothing any more: whatever fails after the engine was closed is no news. */
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
