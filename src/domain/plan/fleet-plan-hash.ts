import type { Compute } from '../compute/compute.ts';
import type { Plan } from './plan.ts';

/**
 * The text of which a plan's hash is made: the policies and, for each action, the compute with the sizes and the timeout that it
 * has and is to get, whether it is now or later, and whether it disconnects. When it was planned does not matter.
 */
export function planHash(policySetHash: string, computes: readonly { compute: Compute; plan: Plan }[]): string {
  const actions = computes.flatMap(({ compute, plan }) =>
    plan.actions.map(({ kind, fields, disconnects }) => [
      ...[compute.computeId, plan.verdict, kind, disconnects],
      ...[compute.minCu, compute.maxCu, compute.suspendTimeoutSeconds],
      ...[fields.minCu ?? null, fields.maxCu ?? null, fields.suspendTimeoutSeconds ?? null],
    ]),
  );
  return JSON.stringify([policySetHash, ...actions]);
}
