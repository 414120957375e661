/** Finds the shortest list of actions that still breaks a rule: leaves out more and more of them. */

import type { SimAction, SimPlan } from './plan.ts';
import { simulate } from './run.ts';

/** So many runs at most: each takes about half a second. */
const MOST_RUNS = 250;

/** The plan with fewer actions after which the same rule is broken; `onRun` is told how many are left. */
export async function shrink(plan: SimPlan, rule: string, onRun: (left: number) => void = () => {}): Promise<SimPlan> {
  let { actions } = plan;
  let runs = 0;
  const breaks = async (fewer: readonly SimAction[]) => {
    runs += 1;
    const { violations } = await simulate({ ...plan, actions: fewer });
    return violations.some((one) => one.rule === rule);
  };
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = size > 1 ? Math.ceil(size / 2) : 0) {
    for (let from = actions.length - size; from > -size && runs < MOST_RUNS; from -= size) {
      const start = Math.max(0, from);
      const fewer = actions.filter((_, at) => at < start || at >= from + size);
      if (fewer.length < actions.length && (await breaks(fewer))) actions = fewer;
      onRun(actions.length);
    }
  }
  return { ...plan, actions };
}
