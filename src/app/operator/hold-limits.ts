/** Applies hard limits to a hold, so that the person is told what the compute will really get. */

import type { Compute } from '../../domain/compute/compute.ts';
import { decide } from '../../domain/decide/decide.ts';
import { describeValue, type TraceStep } from '../../domain/decide/trace.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import { EVERY_COMPUTE } from '../../domain/policy/selector.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import type { DaemonView, OperatorParts } from './parts.ts';

/** Describes how hard limits change a hold at its start; null if they don't. */
export type LimitOf = (hold: Hold) => string | null;

/** The limits by the daemon's policies. A compute that the daemon doesn't know yet is judged by its ids alone. */
export function limitsOfDaemon({ fleet, policies }: DaemonView): LimitOf {
  return (hold) => {
    const known = fleet.latestEvaluation(hold.computeId);
    if (!known) return limitByIds(policies().set.policies, hold, 'caps');
    const { compute, record } = known;
    const { trace } = decide({
      policies: policies(),
      compute,
      ...decidingFacts(record),
      holds: [hold],
      instantMs: hold.createdAtMs,
    });
    return describeCaps(trace, () => 'caps');
  };
}

/** The limits by the policies of the daemon, or, without one, by those of this machine. */
export async function limitsOf({ daemon, policies }: Pick<OperatorParts, 'daemon' | 'policies'>): Promise<LimitOf> {
  if (daemon) return limitsOfDaemon(daemon);
  const known = await policies?.();
  return (hold) => (known ? limitByIds(known.set.policies, hold, known.areCurrent ? 'caps' : 'may cap') : null);
}

/** As {@link limitsOf}, for a new hold: also says if hard limits are unknown. */
export async function limitOfNew(
  parts: Pick<OperatorParts, 'daemon' | 'policies'>,
  hold: Hold,
): Promise<string | null> {
  const limited = (await limitsOf(parts))(hold);
  const setsNothing = hold.size === undefined && hold.suspendTimeoutSeconds === undefined;
  if (limited !== null || setsNothing || parts.daemon || (await parts.policies?.())?.areCurrent) return limited;
  return 'hard limits still apply, and those of the daemons are not known here';
}

type Verb = 'caps' | 'may cap';

/** The limits of a compute of which only the ids are known. A policy that selects by anything else may cap it. */
function limitByIds(policies: readonly Policy[], hold: Hold, verb: Verb): string | null {
  const { projectId, computeId, createdAtMs } = hold;
  const ids = { projectId, computeId, projectName: projectId, projectNameUnknown: true, branchId: '' } as Compute;
  const certain = new Set<string>();
  const mayCap = policies.flatMap((policy) => {
    if (!ruleOf(policy).overridesHolds(policy) || policy.mode !== 'enforce') return [];
    const { accounts, regions, types, minAgeMs, ...byNames } = policy.select;
    const selection = compileSelector({ ...byNames, minAgeMs: 0 })({ ...ids, createdAtMs }, createdAtMs);
    if (selection === 'no') return [];
    const isOpen = accounts !== undefined || regions !== undefined || types !== undefined || minAgeMs > 0;
    if (selection === 'yes' && !isOpen) certain.add(policy.name);
    return [{ ...policy, select: EVERY_COMPUTE }];
  });
  const compute: Compute = {
    ...ids,
    account: '',
    regionId: '',
    type: 'read_write',
    state: 'idle',
    disabled: false,
    createdAtMs,
    minCu: 1,
    maxCu: 1,
    suspendTimeoutSeconds: 300,
    ...hold.size,
  };
  const set: PolicySet = { hash: '', policies: mayCap, sources: new Map() };
  const input = { policies: compilePolicies(set), compute, baseline: undefined, holds: [hold], instantMs: createdAtMs };
  return describeCaps(decide(input).trace, (policy) => (certain.has(policy) ? verb : 'may cap'));
}

function describeCaps(trace: readonly TraceStep[], verbOf: (policy: string) => Verb): string | null {
  const capped = trace.flatMap(({ code, group, policy, before, after }) => {
    if (code !== 'hard_limit' || !policy || isNothing(before) || isNothing(after)) return [];
    const values = `${describeValue(group, before)} → ${describeValue(group, after)}`;
    return [`hard limit ${policy.name} ${verbOf(policy.name)} it: ${values}`];
  });
  return capped.length > 0 ? capped.join('; ') : null;
}

function isNothing(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
