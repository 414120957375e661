import { expect, it } from 'vitest';
import { startAnnouncements } from '../../src/app/announcements/announcements.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { ownerByCurrentRules } from '../../src/app/fleet/owner-now.ts';
import { recordEntries } from '../../src/app/notifications/notify.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { Project } from '../../src/ports/control-api.ts';
import type { OutboxEntry } from '../../src/ports/outbox.ts';
import { aCompute, aRecord, aSchedule, at, currentRules } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const MINUTE_MS = 60_000;
/** A Monday; the window of `aSchedule` ends at 18:00. */
const EVENING = at('2026-03-02T18:00:00Z');
const OPS: Receiver = {
  ...{ name: 'ops', to: 'webhook', allowedOrigins: [], file: 'ebb.yaml' },
  url: { from: 'text', text: 'http://127.0.0.1/' },
};

/** A primary, and a replica of the same branch that only the policy of `shop` selects. */
const primary = aCompute({ computeId: 'ep-primary', minCu: 1, maxCu: 4 });
const replica = aCompute({ computeId: 'ep-replica', type: 'read_only', minCu: 1, maxCu: 4 });
const disruption = { lower: { when: 'any', atDeadline: 'apply' } } as const;

function start() {
  const rules = currentRules(
    aSchedule({ name: 'all', disruption }),
    aSchedule({
      name: 'of-shop',
      owner: 'shop',
      priority: 1,
      select: aSelector({ types: ['read_only'] }),
      disruption,
    }),
  );
  rules.current.notify = { receivers: [OPS], beforeMs: 15 * MINUTE_MS };
  let nowMs = EVENING - 20 * MINUTE_MS;
  const rounds: (() => unknown)[] = [];
  const clock = {
    ...{ now: () => nowMs, monotonicMs: () => nowMs },
    every: (_ms: number, round: () => unknown) => {
      rounds.push(round);
      return { close: async () => {} };
    },
  };
  const fleet = createFleet({ clock } as unknown as Parameters<typeof createFleet>[0]);
  const { account, projectId, projectName: name, regionId } = primary;
  const project = { account, projectId, name, regionId, updatedAtMs: 0 } as Project;
  fleet.see({ project, computes: [primary, replica], unreadable: [], readAtMs: nowMs, readAtMonotonicMs: nowMs });
  for (const compute of [primary, replica]) {
    const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 } });
    const situation = { policies: rules.current.policies, compute, record, nowMs };
    fleet.putEvaluated({ compute, record, ...evaluate({ ...situation, mode: 'enforce', projectBusy: false }) });
  }
  const queued: OutboxEntry[] = [];
  let decisions = 0;
  const deps = {
    ...{ clock, fleet, rules, mode: 'enforce', leaderLease: { isHeld: () => true } },
    ...{ overrides: { holds: [], freezes: [] }, slots: { isFull: () => false, isAtMostFull: () => false } },
    samples: {
      historyOf() {
        decisions += 1;
        return new Map();
      },
    },
    sets: createPolicySets({ stages: false, accepted: undefined }),
    api: { accountStatus: () => [] },
    store: {
      appendOutbox: async (entries: OutboxEntry[]) => void queued.push(...entries),
      document: async () => undefined,
    },
    runInBackground: (_task: string, round: () => Promise<void>) => round(),
  };
  startAnnouncements(deps as unknown as Parameters<typeof startAnnouncements>[0]);
  const search = async (atMs: number) => {
    nowMs = atMs;
    for (const round of rounds) await round();
  };
  return { rules, fleet, queued, search, decisions: () => decisions };
}

it('changes that are coming are decided once for each evaluation, and told when their time has come', async () => {
  const { rules, queued, search, decisions } = start();
  await search(EVENING - 16 * MINUTE_MS);
  expect([queued.length, decisions()]).toEqual([0, 0]);
  await search(EVENING - 15 * MINUTE_MS);
  expect(queued.map(({ subject }) => subject)).toEqual(['ep-primary', 'ep-replica']);
  const once = decisions();
  await search(EVENING - 14 * MINUTE_MS);
  await search(EVENING - 13 * MINUTE_MS);
  expect(decisions()).toBe(once);
  rules.current.policies = { ...rules.current.policies };
  await search(EVENING - 12 * MINUTE_MS);
  expect(decisions()).toBe(2 * once);
});

it('who is told of a compute follows from its whole branch, for coming changes and for what has happened', async () => {
  const { rules, fleet, queued, search } = start();
  await search(EVENING - 10 * MINUTE_MS);
  const before = aRecord({ lastApplied: { minCu: 1, maxCu: 4 } });
  const mark = { seenAtMs: EVENING, fields: { minCu: 2, maxCu: 8 }, raises: true };
  const after = { ...before, manual: { size: mark } };
  const entries = recordEntries(
    rules.current,
    { compute: primary, before, after, nowMs: EVENING },
    ownerByCurrentRules({ rules, fleet }),
  );
  const owners = [...queued, ...entries].map(({ body }) => (JSON.parse(body) as { owner: string }).owner);
  expect(owners).toEqual(['shop', 'shop', 'shop']);
});
