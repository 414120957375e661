import { type Compute, FIELD_GROUPS, fieldsOf } from '../compute/compute.ts';
import { boundaryAfter, evaluateNow, type Situation, settledSituation } from '../evaluate/evaluate.ts';
import { withoutMark } from '../plan/manual-changes.ts';
import type { Action, Plan } from '../plan/plan.ts';
import type { ComputeRecord } from '../records/compute-record.ts';

/** The evaluation of a compute at later instants, in milliseconds since the epoch, if its state stays as it is. */
export interface Future {
  compute: Compute;
  /** {@link planAt} */
  plan(instantMs: number): Plan;
  /** {@link boundaryAfter} */
  boundaryAfter(instantMs: number): number | undefined;
  /** The future from an instant on, once the change that is planned for it is made. */
  after(instantMs: number): Future;
}

/** Creates the future of a compute, which computes each part once. `situation` may return newer holds and freezes each time. */
export function createFuture(situation: () => Situation): Future {
  let known: Compute | undefined;
  const plan = onceEach((instantMs) => planAt(situation(), instantMs));
  return {
    get compute() {
      known ??= situation().compute;
      return known;
    },
    plan,
    boundaryAfter: onceEach((instantMs) => boundaryAfter(situation(), instantMs)),
    after: onceEach((instantMs) => {
      const [action] = actionsOf(plan(instantMs));
      return createFuture(() => (action ? situationAfter(situation(), action, instantMs) : situation()));
    }),
  };
}

/** Returns a function that computes its result once for each instant. */
function onceEach<Result>(compute: (instantMs: number) => Result): (instantMs: number) => Result {
  const results = new Map<number, Result>();
  return (instantMs) => {
    const result = results.has(instantMs) ? (results.get(instantMs) as Result) : compute(instantMs);
    results.set(instantMs, result);
    return result;
  };
}

/** The plan for a compute at a future instant, if its state stays as it is. */
export function planAt(situation: Situation, instantMs: number): Plan {
  return evaluateNow({ ...settledSituation(situation), nowMs: instantMs }).plan;
}

export function actionsOf({ verdict, actions }: Plan): readonly Action[] {
  return verdict === 'act' ? actions : [];
}

/** The situation of a compute once an action has been taken at an instant. */
function situationAfter(
  situation: Situation,
  { fields, disconnects, raises, policy }: Action,
  atMs: number,
): Situation {
  const { compute, record, ...others } = settledSituation(situation);
  const restarted = disconnects ? { lastDisruption: { atMs, lowered: !raises, policy } } : {};
  const changed = { ...compute, ...fields, ...(disconnects && { startedAtMs: atMs }) };
  if (!record) return { ...others, compute: changed, record };
  const changedGroups = FIELD_GROUPS.filter((group) => fieldsOf(group, fields) !== undefined);
  // Deadlines count from when the value was wanted that is to be changed next.
  const wanted = changedGroups.map(
    (group) => [group, { fields: fieldsOf(group, fields) ?? {}, sinceMs: atMs }] as const,
  );
  const applied: ComputeRecord = {
    ...record,
    lastApplied: { ...record.lastApplied, ...fields },
    wanted: { ...record.wanted, ...Object.fromEntries(wanted) },
    ...restarted,
  };
  return { ...others, compute: changed, record: changedGroups.reduce(withoutMark, applied) };
}
