import { expect, it } from 'vitest';
import { beginAtBoundary, endAtBoundary } from '../../src/app/fleet/at-boundary.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type ResyncDeps, reconcileUnfinished } from '../../src/app/resync.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, aSchedule, currentRules } from '../support/builders.ts';

const SEVEN = Date.parse('2026-11-23T07:00:00Z');
const EIGHT = Date.parse('2026-11-23T08:00:00Z');
const OFFICE_HOURS = { minCu: 1, maxCu: 4 };

/** A daemon that has read and evaluated one compute before a boundary, and what it asks for 20 s after it. */
async function askedFor({
  stored,
  atBoundary,
  isEvaluated = true,
  isRead = true,
}: {
  stored: Partial<ComputeRecord>;
  atBoundary?: string;
  isEvaluated?: boolean;
  isRead?: boolean;
}) {
  const time = { ms: SEVEN };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as never);
  const rules = currentRules(aSchedule());
  const compute = aCompute({ minCu: 0.25, maxCu: 1 });
  const { projectId, computeId } = compute;
  const project = { account: 'default', projectId, name: 'p', regionId: 'r', updatedAtMs: 0 };
  const reading = { project, computes: [compute], unreadable: [], readAtMs: SEVEN, readAtMonotonicMs: SEVEN };
  fleet.list(project);
  if (isRead) fleet.cache(reading);
  const record = aRecord({ lastApplied: { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 } });
  const situation = { policies: rules.current.policies, compute, record, nowMs: SEVEN, mode: 'enforce' };
  if (isEvaluated)
    fleet.putEvaluated({ compute, record, ...evaluate({ ...situation, projectBusy: false, disruption: {} } as never) });
  if (atBoundary) beginAtBoundary(fleet, EIGHT, atBoundary);
  const asked: string[] = [];
  const deps = {
    ...{ clock, fleet, rules, overrides: { holds: [], freezes: [] }, mode: 'enforce', blocked: () => undefined },
    ...{ samples: { historyOf: () => [] }, slots: { isAtOnceReached: () => false, isAtMostReached: () => false } },
    store: { records: async () => new Map([[computeId, { ...record, ...stored }]]) },
    sharedReadings: { take: async () => Boolean(fleet.cache({ ...reading, isShared: true })) },
    queue: { add: async (queue: string, { key }: { key: string }) => asked.push(`${queue} ${key}`) },
    runInBackground: (_task: string, work: () => Promise<void>) => work(),
  } as unknown as ResyncDeps;
  time.ms = EIGHT + 20_000;
  await reconcileUnfinished(deps);
  return { asked, fleet, computeId, again: () => reconcileUnfinished(deps) };
}

it('a boundary whose trigger was lost is reconciled', async () => {
  expect((await askedFor({ stored: {} })).asked).toEqual(['reconcile p-one']);
});

it('what another daemon has changed at a boundary is taken from its record, and not read again', async () => {
  const lastApplied = { ...OFFICE_HOURS, suspendTimeoutSeconds: 300 };
  const { asked, fleet, computeId } = await askedFor({ stored: { lastApplied, lastSentAtMs: EIGHT + 2_000 } });
  expect(asked).toEqual([]);
  expect(fleet.latestEvaluation(computeId)?.compute).toMatchObject(OFFICE_HOURS);
});

it('what another daemon has sent without an answer is reconciled', async () => {
  const intent = { fields: OFFICE_HOURS, atMs: EIGHT + 2_000 };
  const stored = { intent, lastSentAtMs: EIGHT + 2_000 };
  expect((await askedFor({ stored })).asked).toEqual(['reconcile p-one']);
});

it('what a person had set after ebb applied it is as it was read', async () => {
  const lastApplied = { ...OFFICE_HOURS, suspendTimeoutSeconds: 300 };
  const manual = { size: { fields: { minCu: 0.25, maxCu: 1 }, seenAtMs: EIGHT, raises: false } };
  const { fleet, computeId } = await askedFor({ stored: { lastApplied, manual, lastSentAtMs: EIGHT + 2_000 } });
  expect(fleet.latestEvaluation(computeId)?.compute).toMatchObject({ minCu: 0.25, maxCu: 1 });
});

it('while projects of its account are taken over a boundary, what is due is left to that, also where it was evaluated after the instant', async () => {
  const { asked, fleet, again } = await askedFor({ stored: {}, atBoundary: 'default' });
  expect(asked).toEqual([]);
  endAtBoundary(fleet, EIGHT, 'default');
  await again();
  expect(asked).toEqual(['reconcile p-one']);
  beginAtBoundary(fleet, EIGHT, 'default');
  await again();
  expect(asked).toHaveLength(1);
});

it('a boundary of one account keeps nothing of another from being reconciled', async () => {
  expect((await askedFor({ stored: {}, atBoundary: 'other' })).asked).toEqual(['reconcile p-one']);
});

it.each([
  ['what this daemon has read and another one has reconciled', true],
  ['what only another daemon has read', false],
])('%s counts in its fleet', async (_what, isRead) => {
  const lastApplied = { ...OFFICE_HOURS, suspendTimeoutSeconds: 300 };
  const stored = { lastApplied, lastSentAtMs: EIGHT + 2_000 };
  const { fleet, asked } = await askedFor({ stored, isEvaluated: false, isRead });
  expect([...fleet.evaluatedComputes()]).toHaveLength(1);
  expect(asked).toEqual([]);
});
