import { mapInTurns } from '../../common/in-turns.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { groupBy } from '../../domain/grouping.ts';
import { type ComingChange, digestOfChanges, planAt } from '../../domain/notifications/coming-change.ts';
import { receiversOf } from '../../domain/notifications/notification.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import { SECOND_MS } from '../../domain/time/units.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Approval, Store } from '../../ports/store.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { outboxEntry } from '../notifications/notify.ts';
import { digestAfter, digestId, digestKey, SENT_DIGESTS, slotOf } from '../notifications/sent-digests.ts';
import { type CompiledRules, compileRules } from '../rules.ts';

/** Approved restarts come this long after their announcement, in milliseconds, so that people have it before. */
const AHEAD_MS = 5 * SECOND_MS;

interface AnnounceApprovedDeps extends EvaluateDeps {
  store: Pick<Store, 'appendOutbox' | 'document' | 'documents' | 'replaceDocument'>;
  fleet: Pick<Fleet, 'evaluatedComputes'>;
  clock: EvaluateDeps['clock'] & Parameters<typeof mapInTurns>[2];
}

/**
 * Announces the restarts that approved rules make at once, if no daemon of the group has: one message for each receiver and owner. Otherwise
 * each restart would be told by itself. Returns true until the announced instant has come. The last of the approvals comes first.
 */
export async function announceApproved(
  deps: AnnounceApprovedDeps,
  rules: Rules,
  approvals: readonly Approval[],
): Promise<boolean> {
  const [last] = approvals;
  const nowMs = deps.clock.now();
  // Whoever approves once more delays nothing.
  const slots = new Set(approvals.map(({ atMs }) => atMs));
  const announced = [...(await SENT_DIGESTS.all(deps.store))].filter(
    ([key, { isOfApproval, untilMs }]) => isOfApproval && untilMs >= nowMs && slots.has(slotOf(key)),
  );
  if (!last || announced.length > 0) return announced.some(([, { toMs = 0 }]) => nowMs < toMs);
  const current = compileRules(rules, deps.rules.current);
  const coming = await restartsAt({ ...deps, rules: { current } }, nowMs + AHEAD_MS, last);
  const digests = digestsOf(deps, current, coming);
  const occasion = `as policy set ${shortHash(rules.policies.hash)} becomes current, approved by ${last.who}`;
  for (const [key, digest] of digests) await queueDigest(deps, { key, digest, occasion, nowMs });
  return digests.size > 0;
}

async function restartsAt(deps: AnnounceApprovedDeps, instantMs: number, { atMs: slotMs }: Approval) {
  const restartOf = ({ compute, record }: EvaluatedCompute): ComingChange[] => {
    const { verdict, actions } = planAt(situationOf(deps, { compute, record, projectBusy: false }), instantMs);
    const action = verdict === 'act' ? actions.find(({ disconnects }) => disconnects) : undefined;
    return action ? [{ compute, action, instantMs, slotMs }] : [];
  };
  return (await mapInTurns([...deps.fleet.evaluatedComputes()], restartOf, deps.clock)).flat();
}

interface Digest {
  receiver: string;
  owner: string;
  change: ComingChange;
}

/** The restarts for each receiver and owner, by the name of the document. */
function digestsOf(
  { fleet }: AnnounceApprovedDeps,
  { policies, notify, costs }: CompiledRules,
  restarts: readonly ComingChange[],
): Map<string, Digest[]> {
  const computes = [...fleet.evaluatedComputes()].map(({ compute }) => compute);
  const ownerOf = computeOwners({ rules: costs.owners, policies, computes });
  const addressed = restarts.flatMap((change) => {
    const owner = ownerOf(change.compute);
    const policy = policies.set.policies.find(({ name }) => name === change.action.policy);
    const receivers = receiversOf(notify.receivers, { kind: 'change_coming', owner, receivers: policy?.notify ?? [] });
    return receivers.map(({ name: receiver }) => ({ receiver, owner, change }));
  });
  return groupBy(addressed, ({ receiver, owner, change }) => digestKey(receiver, owner, change.slotMs));
}

async function queueDigest(
  { store, rules }: AnnounceApprovedDeps,
  { key, digest, occasion, nowMs }: { key: string; digest: readonly Digest[]; occasion: string; nowMs: number },
): Promise<void> {
  const [first, ...others] = digest.map(({ change }) => change);
  const { receiver = '', owner = '' } = digest[0] ?? {};
  const { value, replace } = await SENT_DIGESTS.open(store, key);
  if (!first || (value && value.untilMs >= nowMs)) return;
  const { instantMs } = first;
  const changes = [first, ...others] as const;
  // The same set may be approved long before: it has become current again.
  const id = digestId({ owner, slotMs: instantMs }, changes);
  const notification = digestOfChanges(changes, { id, owner, nowMs, occasion });
  await store.appendOutbox([outboxEntry(notification, receiver, rules.current.notify.statusUrl)]);
  // If another daemon was faster, only what it has told counts.
  await replace({ ...digestAfter(undefined, changes, instantMs), isOfApproval: true });
}
