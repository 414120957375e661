import { describeStep } from './describe-step.ts';
import type { TraceStep } from './trace.ts';

/** A step of a trace as other programs read it. */
export interface StepJson {
  group: string;
  code: string;
  policy?: string;
  mode?: string;
  hold?: string;
  before?: ValueJson;
  after?: ValueJson;
  connections?: { peak: number; need: number; usable: number };
  minimum?: { min_cu: number; allows_cu: number };
  message: string;
}

/** A timeout in seconds, or a size. */
type ValueJson = { min_cu: number; max_cu: number } | number | null;

export function stepJson(step: TraceStep): StepJson {
  const { group, code, proposal, policy = proposal?.policy, hold, before, after, connections, minimum } = step;
  return {
    group,
    code,
    ...(policy && { policy: policy.name, mode: policy.mode }),
    ...(hold && { hold: hold.id }),
    ...(before !== undefined && { before: valueJson(before) }),
    ...(after !== undefined && { after: valueJson(after) }),
    ...(connections && { connections }),
    ...(minimum && { minimum: { min_cu: minimum.minCu, allows_cu: minimum.allowsCu } }),
    message: describeStep(step),
  };
}

function valueJson(value: TraceStep['after']): ValueJson {
  if (value === undefined || value === null || typeof value === 'number') return value ?? null;
  return { min_cu: value.minCu, max_cu: value.maxCu };
}
