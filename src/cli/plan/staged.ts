/** The changes of a plan that daemons make only once a person has approved a staged policy set. */
import type { StagedPart } from '../../app/situation/staged-parts.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { Reason } from '../../domain/compute/reasons.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { FleetPlan } from '../../domain/evaluate/plan-fleet.ts';
import type { Plan } from '../../domain/plan/plan.ts';
import { type PolicySet, shortHash } from '../../domain/policy/policy.ts';
import { compileProjectSelector } from '../../domain/policy/select.ts';
import { NO_TEAM, type TeamScope, teamPart } from '../../domain/policy/team-parts.ts';

/**
 * Returns the hash to approve for each change that waits only for an approval. Daemons have already made the changes of the policies that they
 * use. If `policies` are the staged ones, the remaining changes of the computes in a staged part therefore come from that part. If they are
 * others, no approval is assumed.
 */
export function approvalsNeeded(
  computes: readonly EvaluatedCompute[],
  { staged, policies, teams }: { staged: readonly StagedPart[]; policies: PolicySet; teams: readonly TeamScope[] },
): ReadonlyMap<EvaluatedCompute, string> {
  const parts = staged
    .filter(({ team, setHash }) => [teamPart(policies, team).hash, policies.hash].includes(setHash ?? ''))
    .map(({ team, hash }) => ({ hash, concerns: inScope(teams, team) }));
  const madeOnceApproved = computes.filter(({ plan }) => plan.verdict === 'act' || isOnlySpread(plan));
  return new Map(
    madeOnceApproved.flatMap((one) => {
      const part = parts.find(({ concerns }) => concerns(one.compute));
      return part ? [[one, part.hash] as const] : [];
    }),
  );
}

function inScope(teams: readonly TeamScope[], team: string): (compute: Compute) => boolean {
  if (team === NO_TEAM) return () => true;
  const scope = teams.find(({ name }) => name === team);
  const covers = scope && compileProjectSelector(scope);
  return (compute) => covers?.(compute) === 'yes';
}

/** The plan as people see it: changes that need an approval wait for it. */
export function withApprovals(plan: FleetPlan, approvals: ReadonlyMap<EvaluatedCompute, string>): FleetPlan {
  return { ...plan, computes: plan.computes.map((one) => withApproval(one, approvals.get(one))) };
}

/** Like {@link withApprovals}, for one compute. `hash` is the hash to approve; undefined if the change needs no approval. */
export function withApproval(evaluated: EvaluatedCompute, hash: string | undefined): EvaluatedCompute {
  return hash === undefined ? evaluated : { ...evaluated, plan: awaiting(evaluated.plan, hash) };
}

function awaiting({ untilMs: _, ...plan }: Plan, hash: string): Plan {
  const gate = { code: 'staged', message: `the policy set is staged: ebb approve ${shortHash(hash)}` } as const;
  const nowWaiting = plan.why.map((why) => ({ why, gate }));
  const waiting = plan.waiting.map((one) => (spreads(one.gate) ? { ...one, gate } : one));
  return { ...plan, verdict: 'wait', why: [], waiting: [...nowWaiting, ...waiting] };
}

/** True for a plan that waits, but only for a limit that spreads restarts. */
export function isOnlySpread({ verdict, waiting }: Plan): boolean {
  return verdict === 'wait' && waiting.every(({ gate }) => spreads(gate));
}

/** True for a gate that only spreads restarts over time. */
export function spreads({ code }: Reason): boolean {
  return code === 'at_once' || code === 'at_most';
}

/** An additional field of a compute in JSON documents: the hash to approve before its actions are taken. */
export function approvalJson(hash: string | undefined): { waits_for_approval?: string } {
  return hash === undefined ? {} : { waits_for_approval: hash };
}
