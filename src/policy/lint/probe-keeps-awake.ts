import { NEVER_SUSPENDS } from '../../domain/compute.ts';
import type { HeadroomPolicy, Policy } from '../../domain/policy.ts';
import { formatSuspendTimeout } from '../../domain/settings-text.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { isKind, wantedBy } from './schedules.ts';

/** The platform puts a compute to sleep a little after its timeout; a question in between starts it anew. */
const MARGIN_SECONDS = 60;
const LONGEST_EVERY_SECONDS = 86_400;

/**
 * Counts asked of Postgres itself at an interval that starts the timeout anew before it has passed: while a client stays
 * connected without a query, nothing but the question keeps the compute awake.
 */
export const probeKeepsAwake: LintRule = function* (context) {
  const known = new Map<string, Remark & { seconds: number }>();
  for (const policy of context.policies.filter(isKind('headroom'))) {
    const source = postgresSourceOf(policy, context);
    const longest = source && longestTimeout(policy, context);
    if (!longest || source.everySeconds >= longest.seconds + MARGIN_SECONDS) continue;
    if ((known.get(policy.connections)?.seconds ?? 0) >= longest.seconds) continue;
    const message = [
      `asking every ${formatSuspendTimeout(source.everySeconds)} keeps computes awake that ${nameOf(context, longest.policy)} wants asleep`,
      ` after ${formatSuspendTimeout(longest.seconds)}; ${advice(longest.seconds)}`,
    ].join('');
    known.set(policy.connections, {
      code: 'probe-keeps-awake',
      policy,
      ...source.place,
      message,
      seconds: longest.seconds,
    });
  }
  yield* known.values();
};

function advice(seconds: number): string {
  const enough = seconds + MARGIN_SECONDS;
  const prometheus = 'take the counts from prometheus';
  return enough > LONGEST_EVERY_SECONDS
    ? prometheus
    : `write every: ${formatSuspendTimeout(enough)} or more, or ${prometheus}`;
}

/** Undefined for sources that wake nothing, and for those that nothing defines. */
function postgresSourceOf(policy: HeadroomPolicy, { written, sources }: LintContext) {
  const source = sources.get(policy.connections);
  if (source?.from !== 'postgres') return undefined;
  const every = ['sources', policy.connections, 'every'];
  const isWrittenHere = written(policy)?.valueAt(every) !== undefined;
  const place = isWrittenHere ? { at: every, fromTop: true } : { at: ['connections'] };
  return { everySeconds: source.everyMs / 1000, place };
}

/** The longest timeout, other than never, that a policy wants of a compute whose connections are counted. */
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
  if (policy.kind === 'limits') return Math.max(0, policy.suspendTimeout?.maxSeconds ?? NEVER_SUSPENDS);
  if (policy.kind !== 'schedule') return 0;
  return Math.max(0, ...wantedBy(policy).map(({ values }) => values.suspendTimeoutSeconds ?? NEVER_SUSPENDS));
}
