/** Finds when ebb changes a compute next. Unlike a boundary, this heeds holds, freezes and manual changes. All instants are ms since the epoch. */
import type { ReasonCode } from '../compute/reasons.ts';
import type { Decision } from '../decide/decide.ts';
import type { Freeze } from '../overrides/freezes.ts';
import type { Plan } from '../plan/plan.ts';

/** Gates by which people keep a compute as it is, until a known end or until they act. */
const BY_PEOPLE: ReadonlySet<ReasonCode> = new Set(['frozen', 'not_loaded', 'held', 'manual_change', 'fight_stopped']);

/** The maximum number of instants that one search evaluates. */
const MAX_STEPS = 50;

interface EvaluatedAt {
  decision: Decision;
  plan: Plan;
}

export interface NextChangeInput {
  nowMs: number;
  /** The next boundary after now; undefined if there is none. */
  nextBoundaryMs: number | undefined;
  /** People's freezes that concern the compute. */
  freezes: readonly Freeze[];
  boundaryAfter(instantMs: number): number | undefined;
  /** The evaluation at an instant, if the compute stays as it is. */
  evaluateAt(instantMs: number): EvaluatedAt;
}

/**
 * The next boundary, if nobody then keeps the compute as it is. Otherwise the first later instant at which another value is wanted and nobody
 * keeps it back: a boundary, or the end of a freeze, hold or respected manual change. Undefined if none is near.
 */
export function nextChange(input: NextChangeInput): number | undefined {
  const { nowMs, evaluateAt } = input;
  const now = evaluateAt(nowMs);
  const changesNow = freeChanges(now.plan);
  let wasKept = false;
  for (let steps = 0, instantMs = nowMs, at = now; steps < MAX_STEPS; steps += 1) {
    const frozenUntilMs = frozenUntil(at.decision, input.freezes, instantMs);
    const isKept = frozenUntilMs !== undefined || hasKeepingGate(at.plan);
    wasKept ||= isKept;
    const changes = freeChanges(at.plan);
    if (instantMs > nowMs && (!wasKept || (changes !== '' && changes !== changesNow))) return instantMs;
    const nextMs = frozenUntilMs ?? stepAfter(input, instantMs, isKept ? at.plan.untilMs : undefined);
    if (!Number.isFinite(nextMs)) return undefined;
    instantMs = nextMs;
    at = evaluateAt(instantMs);
  }
  return undefined;
}

/** The next boundary or, if that is earlier, the end of what keeps the compute as it is; infinity if there is neither. */
function stepAfter(
  { nowMs, nextBoundaryMs, boundaryAfter }: NextChangeInput,
  instantMs: number,
  keptUntilMs: number | undefined,
): number {
  const boundaryMs = instantMs === nowMs ? nextBoundaryMs : boundaryAfter(instantMs);
  const ends = [boundaryMs, keptUntilMs].flatMap((ms) => (ms !== undefined && ms > instantMs ? [ms] : []));
  return Math.min(Number.POSITIVE_INFINITY, ...ends);
}

function hasKeepingGate({ waiting }: Plan): boolean {
  return waiting.some(({ gate }) => BY_PEOPLE.has(gate.code));
}

/** The wanted changes that no person keeps back, as a text to compare; empty if there are none. */
function freeChanges({ verdict, why, waiting }: Plan): string {
  const free = waiting.flatMap(({ why: wanted, gate }) => (BY_PEOPLE.has(gate.code) ? [] : [wanted.message]));
  return [...(verdict === 'act' ? why.map(({ message }) => message) : []), ...free].join('\n');
}

/** No boundary before this instant changes anything: the last end of freezes that stop even raises, and of a hold on all fields. */
function frozenUntil(
  { freezes: freezesOfPolicies, holds: [newest] }: Decision,
  freezes: readonly Freeze[],
  instantMs: number,
): number | undefined {
  const isWholeHold = newest?.freeze && !newest.size && newest.suspendTimeoutSeconds === undefined;
  const ends = [
    ...freezesOfPolicies.flatMap(({ allowRaise, untilMs = Number.POSITIVE_INFINITY }) => (allowRaise ? [] : [untilMs])),
    ...freezes.flatMap(({ allowRaise, expiresAtMs }) => (allowRaise ? [] : [expiresAtMs])),
    ...(isWholeHold ? [newest.expiresAtMs] : []),
  ].filter((endMs) => endMs > instantMs);
  return ends.length === 0 ? undefined : Math.max(...ends);
}
