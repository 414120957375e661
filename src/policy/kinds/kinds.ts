import { z } from 'zod';
import type { PolicyKind, PolicyOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { budgetText } from './budget.ts';
import { freezeText } from './freeze.ts';
import { guardText } from './guard.ts';
import { headroomText } from './headroom.ts';
import type { KindText } from './kind.ts';
import { limitsText } from './limits.ts';
import { restartText } from './restart.ts';
import { scheduleText } from './schedule.ts';
import { trialText } from './trial.ts';

/** The text half of every kind. A new kind is one file and one line here, and the same in src/domain/policy/kinds. */
export const KINDS: { readonly [K in PolicyKind]: KindText<PolicyOf<K>> } = {
  schedule: scheduleText,
  headroom: headroomText,
  limits: limitsText,
  restart: restartText,
  freeze: freezeText,
  trial: trialText,
  budget: budgetText,
  guard: guardText,
};

const [first, ...others] = Object.values(KINDS).map(({ schema }) => schema);

export const AnyPolicy = z.discriminatedUnion('kind', [first as z.ZodObject, ...others]);

export function textOf<P extends Policy>(policy: P): KindText<P> {
  return KINDS[policy.kind] as unknown as KindText<P>;
}
