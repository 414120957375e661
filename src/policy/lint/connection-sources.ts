import { formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { syntaxOf } from '../kinds/kinds.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';

/** The platform suspends a compute a little after its timeout; a query before that restarts the timeout. */
const MARGIN_SECONDS = 60;
const LONGEST_EVERY_SECONDS = 86_400;

/** A Postgres source whose polling interval is shorter than the timeout of its computes, which therefore never sleep. */
export const probeKeepsAwake: LintRule = function* (context) {
  const bySource = new Map<string, Remark & { seconds: number }>();
  for (const policy of policiesOfKind(context.policies, 'headroom')) {
    const source = postgresSourceOf(policy, context);
    const longest = source && longestTimeout(policy, context);
    if (!longest || source.everySeconds >= longest.seconds + MARGIN_SECONDS) continue;
    if ((bySource.get(policy.connections)?.seconds ?? 0) >= longest.seconds) continue;
    const message = [
      `asking every ${formatSuspendTimeout(source.everySeconds)} keeps computes awake that ${nameOf(context, longest.policy)} wants asleep`,
      ` after ${formatSuspendTimeout(longest.seconds)}; ${advice(longest.seconds)}`,
    ].join('');
    bySource.set(policy.connections, {
      code: 'probe-keeps-awake',
      policy,
      ...source.place,
      message,
      seconds: longest.seconds,
    });
  }
  yield* bySource.values();
};

function advice(seconds: number): string {
  const enough = seconds + MARGIN_SECONDS;
  const prometheus = 'take the counts from prometheus';
  return enough > LONGEST_EVERY_SECONDS
    ? prometheus
    : `write every: ${formatSuspendTimeout(enough)} or more, or ${prometheus}`;
}

/** The polling interval of a policy's source, and its place; undefined unless the source is a Postgres. */
function postgresSourceOf(policy: HeadroomPolicy, context: LintContext) {
  const source = context.sources.get(policy.connections);
  if (source?.from !== 'postgres') return undefined;
  return { everySeconds: source.everyMs / 1000, place: placeInSource(policy, 'every', context) };
}

/** The longest timeout, other than never, that a policy wants for a compute whose connections are counted. */
function longestTimeout(policy: HeadroomPolicy, { policies, overlap }: LintContext) {
  let longest: { policy: Policy; seconds: number } | undefined;
  for (const other of policies) {
    const seconds = longestOf(other);
    if (seconds <= (longest?.seconds ?? 0) || !overlap.mayMeet(policy, other)) continue;
    longest = { policy: other, seconds };
  }
  return longest;
}

function longestOf(policy: Policy): number {
  const settings = syntaxOf(policy).settings(policy);
  return Math.max(0, ...settings.map((setting) => (setting.field === 'suspend_after' ? setting.maxSeconds : 0)));
}

/** Finds a query that gives every compute the same count, or the count of its project or branch. */
export const queryWithoutCompute: LintRule = function* (context) {
  const warned = new Set<string>();
  for (const policy of policiesOfKind(context.policies, 'headroom')) {
    const source = context.sources.get(policy.connections);
    if (source?.from !== 'prometheus' || source.query === undefined || warned.has(source.name)) continue;
    const { query } = source;
    if (query.includes('$compute')) continue;
    warned.add(source.name);
    const scope = ['$branch', '$project'].find((name) => query.includes(name));
    const counted = scope
      ? `counts all computes of a ${scope.slice(1)} together`
      : 'gives every compute the same count';
    const message = `the query of "${source.name}" names no $compute, so it ${counted}; write for example {endpoint_id="$compute"}`;
    yield {
      code: 'query-without-compute',
      policy,
      ...placeInSource(policy, 'query', context),
      message,
    } satisfies Remark;
  }
};

/** The place of a key in the policy's source, if the source is in the same file; otherwise the place of `connections` in the policy. */
function placeInSource(policy: HeadroomPolicy, key: string, { written }: LintContext): Pick<Remark, 'at' | 'fromTop'> {
  const at = ['sources', policy.connections, key];
  return written(policy)?.valueAt(at) === undefined ? { at: ['connections'] } : { at, fromTop: true };
}
