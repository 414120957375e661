/** Bounds the work of lint by steps and not by time, so that the same policies always get the same findings. */
export interface StepLimit {
  /** False once the limit is exceeded: the caller gives up. */
  spend(steps: number): boolean;
  isExhausted(): boolean;
}

/** A step takes about 20 µs, as the search for the next change of one window does. */
export const LINT_STEPS = 60_000;

export function createStepLimit(steps: number): StepLimit {
  let left = steps;
  return {
    spend(used) {
      left -= used;
      return left >= 0;
    },
    isExhausted: () => left < 0,
  };
}
