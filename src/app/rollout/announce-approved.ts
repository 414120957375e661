import { isDeepStrictEqual } from 'node:util';
import { mapInTurns } from '../../common/in-turns.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { type ComingChange, digestOfChanges } from '../../domain/notifications/coming-change.ts';
import { planAt } from '../../domain/notifications/future.ts';
import { receiversOf } from '../../domain/notifications/notification.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import { SECOND_MS } from '../../domain/time/units.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Approval, Store } from '../../ports/store.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownedComputes } from '../fleet/owned-computes.ts';
import { outboxEntry } from '../notifications/notify.ts';
import { type ObstacleDeps, obstacleTo } from '../notifications/obstacle.ts';
import { digestAfter, digestId, digestKey, partsOfKey, SENT_DIGESTS } from '../notifications/sent-digests.ts';
import { type CompiledRules, compileRules } from '../rules.ts';

/** Approved restarts come this long after their announcement, in milliseconds, so that the message arrives first. */
const AHEAD_MS = 5 * SECOND_MS;

interface AnnounceApprovedDeps extends EvaluateDeps, ObstacleDeps {
  store: Pick<Store, 'appendOutbox' | 'document' | 'documents' | 'replaceDocument'>;
  fleet: Pick<Fleet, 'evaluatedComputes'>;
  clock: EvaluateDeps['clock'] & Parameters<typeof mapInTurns>[2];
}

/**
 * Announces the restarts that approved rules make at once, in one message for each receiver and owner instead of one for each restart. A later
 * approval, for example of another team's part, announces only restarts that earlier announcements have not named. Returns true until the
 * announced instants have passed. `approvals`: the latest first.
 */
export async function announceApproved(
  deps: AnnounceApprovedDeps,
  rules: Rules,
  approvals: readonly Approval[],
): Promise<boolean> {
  const [last] = approvals;
  if (!last) return false;
  const nowMs = deps.clock.now();
  const slots = new Set(approvals.map(({ atMs }) => atMs));
  const announced = [...(await SENT_DIGESTS.all(deps.store))].flatMap(([key, digest]) => {
    const { slotMs } = partsOfKey(key);
    return digest.isOfApproval && digest.untilMs >= nowMs && slots.has(slotMs) ? [{ ...digest, slotMs }] : [];
  });
  const isAhead = announced.some(({ toMs = 0 }) => nowMs < toMs);
  if (announced.some(({ slotMs }) => slotMs === last.atMs)) return isAhead;
  const namedIds = new Set(announced.flatMap(({ restartIds = [] }) => restartIds));
  const current = compileRules(rules, deps.rules.current);
  const restarts = await restartsAt({ ...deps, rules: { current } }, deps, { instantMs: nowMs + AHEAD_MS, last });
  const coming = restarts.filter(({ compute }) => !namedIds.has(compute.computeId));
  const digests = digestsOf(deps, current, coming);
  const occasion = `as policy set ${shortHash(rules.policies.hash)} becomes current, approved by ${approversOf(approvals)}`;
  for (const [key, changes] of digests) await queueDigest(deps, { key, changes, occasion, nowMs });
  return isAhead || digests.size > 0;
}

/** Returns the names of the people who last approved each of the sets, comma-separated. `approvals`: the latest first. */
export function approversOf(approvals: readonly Approval[]): string {
  const whoByHash = new Map(approvals.toReversed().map(({ hash, who }) => [hash, who]));
  return [...new Set(whoByHash.values())].join(', ');
}

/**
 * Returns the restarts that only the approved rules make at an instant. A restart that the present rules make, too, is late for another reason,
 * such as an outage. The restarts belong to the slot of the approval, by which pending writes find their announcement.
 */
async function restartsAt(
  approved: AnnounceApprovedDeps,
  present: EvaluateDeps,
  { instantMs, last: { atMs: slotMs } }: { instantMs: number; last: Approval },
): Promise<ComingChange[]> {
  const hashOf = ({ rules }: EvaluateDeps) => rules.current.policies.set.hash;
  // After a start, the set that waited for the approval is the present one already, but it has restarted nothing yet.
  const before = hashOf(present) === hashOf(approved) ? undefined : present;
  const comingTo = ({ compute, record }: EvaluatedCompute): ComingChange[] => {
    const subject = { compute, record, projectBusy: false } as const;
    const action = restartBy(approved, subject, instantMs);
    if (!action || isDeepStrictEqual(before && restartBy(before, subject, instantMs)?.fields, action.fields)) return [];
    return [{ compute, action, instantMs, slotMs }];
  };
  return (await mapInTurns([...approved.fleet.evaluatedComputes()], comingTo, approved.clock)).flat();
}

/** Returns the action by which rules restart a compute at an instant; undefined if they don't. */
function restartBy(rules: EvaluateDeps, subject: Parameters<typeof situationOf>[1], instantMs: number) {
  const { verdict, actions } = planAt(situationOf(rules, subject), instantMs);
  return verdict === 'act' ? actions.find(({ disconnects }) => disconnects) : undefined;
}

/** Groups the restarts by receiver and owner. The keys are those of stored digests ({@link digestKey}). */
function digestsOf(
  { fleet }: AnnounceApprovedDeps,
  current: CompiledRules,
  restarts: readonly ComingChange[],
): Map<string, ComingChange[]> {
  const { ownerOf } = ownedComputes({ fleet, rules: { current } });
  const digests = new Map<string, ComingChange[]>();
  for (const change of restarts) {
    const owner = ownerOf(change.compute);
    const policy = current.policies.set.policies.find(({ name }) => name === change.action.policy);
    const to = { kind: 'change_coming', owner, receivers: policy?.notify ?? [] } as const;
    for (const { name: receiver } of receiversOf(current.notify.receivers, to)) {
      const key = digestKey(receiver, owner, change.slotMs);
      digests.set(key, [...(digests.get(key) ?? []), change]);
    }
  }
  return digests;
}

async function queueDigest(
  deps: AnnounceApprovedDeps,
  { key, changes, occasion, nowMs }: { key: string; changes: readonly ComingChange[]; occasion: string; nowMs: number },
): Promise<void> {
  const { store, rules } = deps;
  const [first, ...others] = changes;
  const { receiver, owner } = partsOfKey(key);
  const { value, replace } = await SENT_DIGESTS.open(store, key);
  if (!first || (value && value.untilMs >= nowMs)) return;
  // An expired digest is replaced: a set that was approved long ago may become current again.
  const id = digestId({ owner, slotMs: first.instantMs }, changes);
  const obstacle = obstacleTo(
    deps,
    changes.map(({ compute }) => compute),
  );
  const notification = digestOfChanges([first, ...others], { id, owner, nowMs, occasion, obstacle });
  await store.appendOutbox([outboxEntry(notification, receiver, rules.current.notify.statusUrl)]);
  // If another daemon has stored its digest meanwhile, its digest stays.
  await replace({ ...digestAfter(undefined, changes, first.instantMs), isOfApproval: true });
}
