import { z } from 'zod';
import type { PolicyKind, PolicyOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { budgetSyntax } from './budget.ts';
import { freezeSyntax } from './freeze.ts';
import { guardSyntax } from './guard.ts';
import { headroomSyntax } from './headroom.ts';
import type { KindSyntax } from './kind.ts';
import { limitsSyntax } from './limits.ts';
import { restartSyntax } from './restart.ts';
import { scheduleSyntax } from './schedule.ts';
import { trialSyntax } from './trial.ts';

/** The syntax of every kind. A new kind is one file and one line here, and the same in src/domain/policy/kinds. */
export const KINDS: { readonly [K in PolicyKind]: KindSyntax<PolicyOf<K>> } = {
  schedule: scheduleSyntax,
  headroom: headroomSyntax,
  limits: limitsSyntax,
  restart: restartSyntax,
  freeze: freezeSyntax,
  trial: trialSyntax,
  budget: budgetSyntax,
  guard: guardSyntax,
};

const [first, ...others] = Object.values(KINDS).map(({ schema }) => schema);

export const AnyPolicy = z.discriminatedUnion('kind', [first as z.ZodObject, ...others]);

export function syntaxOf<P extends Policy>(policy: P): KindSyntax<P> {
  return KINDS[policy.kind] as unknown as KindSyntax<P>;
}
