import type { EngineState } from '../../ports/engine.ts';

export interface StateChanges {
  /** Tells the listeners if this is another state than the last one. */
  report(state: EngineState): void;
  onStateChange(listener: (state: EngineState) => void): void;
}

/** Starts as up, since an engine that doesn't open is an error and no engine. */
export function createStateChanges(): StateChanges {
  const listeners: ((state: EngineState) => void)[] = [];
  let up = true;
  return {
    report: (state) => {
      if (state.up === up) return;
      up = state.up;
      for (const listener of listeners) listener(state);
    },
    onStateChange: (listener) => {
      listeners.push(listener);
    },
  };
}
