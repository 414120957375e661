import type { FieldGroup, Size } from '../compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../compute/compute-units.ts';
import { REASONS, type ReasonCode } from '../compute/reasons.ts';
import type { Hold } from '../overrides/holds.ts';
import type { ProposedValues } from '../policy/directive.ts';
import type { PolicyBase } from '../policy/policy-base.ts';
import type { Floor, Restore } from '../records/compute-record.ts';
import { type StepThreshold, stepText } from '../spend/terms.ts';
import { isoInstant } from '../time/units.ts';

/** One step of a decision. */
export interface TraceStep {
  group: FieldGroup;
  code: ReasonCode;
  /** The proposal of a schedule; absent for other kinds of policies. */
  proposal?: ProposedValues;
  /** The policy that caused the step. */
  policy?: PolicyBase;
  budgetStep?: StepThreshold;
  hold?: Hold;
  restore?: Restore;
  floor?: Floor;
  /** The value before and after the step, if the step changed it. */
  before?: Size | number | null;
  after?: Size | number | null;
  /** `peak` is the highest count in the window; the size provides `usable` connections. */
  connections?: { peak: number; need: number; usable: number };
  /** The minimum, in CU, that limits the connections, and the largest maximum that is useful with it. */
  minimum?: { minCu: number; allowsCu: number };
}

/** Describes a trace step for people: the decider and the effect. */
export function describeStep(step: TraceStep): string {
  const decider = describeDecider(step) ?? REASONS[step.code];
  const effect = describeEffect(step);
  return effect === undefined ? decider : `${decider} (${effect})`;
}

/** Names the policy, hold or restore behind a step; undefined if there is none. */
function describeDecider({ proposal, policy, budgetStep, hold, restore, floor }: TraceStep): string | undefined {
  if (proposal) return describeProposal(proposal);
  if (hold) return `hold of ${hold.owner} until ${isoInstant(hold.expiresAtMs)}: ${hold.reason}`;
  if (restore) return `back to the baseline, as ${restore.owner} asked`;
  if (policy && floor)
    return `guard ${policy.name} took a lowering by ${floor.policy} back at ${isoInstant(floor.sinceMs)}`;
  const step = budgetStep ? `, step ${stepText(budgetStep)}` : '';
  return policy && `${policy.kind} ${policy.name}${step}`;
}

function describeProposal(proposal: ProposedValues): string {
  const { policy, source, windowIndex, openSinceMs, startsEarly } = proposal;
  if (source === 'otherwise') return `otherwise of ${policy.name}, priority ${policy.priority}`;
  const kind = source === 'absolute' ? 'interval' : 'window';
  const since = openSinceMs === undefined || !Number.isFinite(openSinceMs) ? 'ever' : isoInstant(openSinceMs);
  const when = startsEarly ? `opens at ${since}${describeWave(proposal)}` : `open since ${since}`;
  return `${kind} ${windowIndex + 1} of ${policy.name}, priority ${policy.priority}, ${when}`;
}

/** The compute's wave, after a comma; empty if unknown. */
function describeWave({ wave, openSinceMs = 0 }: ProposedValues): string {
  return wave ? `, wave ${wave.number} of ${wave.of} from ${isoInstant(openSinceMs - wave.leadMs)}` : '';
}

function describeEffect({ code, before, after, connections, minimum }: TraceStep): string | undefined {
  const parts: string[] = [];
  if (code === 'selection_unknown') parts.push('not known whether it selects this compute');
  if (before !== undefined && before !== null && after !== undefined && after !== null) {
    parts.push(`${describeValue(before)} → ${describeValue(after)}`);
  }
  if (connections) {
    const { peak, need, usable } = connections;
    parts.push(`peak ${peak} connections, ${need} needed, ${usable} usable`);
  }
  if (minimum) {
    parts.push(`the minimum of ${minimum.minCu} CU allows ${minimum.allowsCu} CU: write may_raise_min: true`);
  }
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** A value as policies write it. */
export function describeValue(value: Size | number): string {
  return typeof value === 'number' ? formatSuspendTimeout(value) : `${formatSize(value)} CU`;
}

/** A trace step as JSON for other programs. Its field names are a stable interface. */
export function stepJson(step: TraceStep) {
  const { group, code, policy = step.proposal?.policy, budgetStep, hold, before, after, connections, minimum } = step;
  return {
    group,
    code,
    ...(policy && { policy: policy.name, mode: policy.mode }),
    ...(budgetStep && { step: stepText(budgetStep) }),
    ...(hold && { hold: hold.id }),
    ...(before !== undefined && { before: valueJson(before) }),
    ...(after !== undefined && { after: valueJson(after) }),
    ...(connections && { connections }),
    ...(minimum && { minimum: { min_cu: minimum.minCu, allows_cu: minimum.allowsCu } }),
    message: describeStep(step),
  };
}

/** A timeout in seconds, or a size. */
function valueJson(value: Size | number | null) {
  if (value === null || typeof value === 'number') return value;
  return { min_cu: value.minCu, max_cu: value.maxCu };
}
