/** Bounds the work of lint, by counting steps and not time: the same policies always get the same answer. */
export interface Budget {
  /** False, from then on, once the budget is exceeded: later questions stay unanswered. */
  spend(steps: number): boolean;
  /** True if something was left unanswered. */
  isExhausted(): boolean;
}

/** One step is about as much as the next change of one window, some 20 µs. */
export const LINT_STEPS = 60_000;

export function createBudget(steps: number): Budget {
  let left = steps;
  return {
    spend(used) {
      left -= used;
      return left >= 0;
    },
    isExhausted: () => left < 0,
  };
}
