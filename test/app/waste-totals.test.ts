import { expect, it } from 'vitest';
import { wasteView } from '../../src/adapters/http/page/waste-view.tsx';
import { waste } from '../../src/app/operator/waste.ts';
import { findingDocument, storeFindings } from '../../src/app/recommend/finding-document.ts';
import { ZERO } from '../../src/domain/estimate.ts';
import { type Finding, sleepAfter } from '../../src/domain/recommend/finding.ts';
import { aCompute } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';

const FOUND: Finding = {
  ...{ finding: 'timeout', figure: 'at_least', now: {}, proposed: {}, owner: 'unowned', risk: 'ask' },
  ...{ compute: aCompute(), savesCuHours: { low: 1, mid: 2, high: 3 }, evidence: ['awake'] },
};

it('findings without a price are ranked by CU-hours, also those of the free plan, where dollars are 0', async () => {
  const store = memoryDocumentStore();
  const of = (computeId: string, mid: number, more: Partial<Finding>) =>
    findingDocument({ ...FOUND, ...more, compute: aCompute({ computeId }), savesCuHours: { low: 0, mid, high: mid } });
  const free: Partial<Finding> = { savesUsd: ZERO, isFree: true };
  const findings = [of('ep-a', 1, free), of('ep-b', 2, {}), of('ep-c', 3, free), of('ep-d', 4, {})];
  await storeFindings(store, 'p', { account: 'a', atMs: 0, findings });
  const answer = await waste({ store } as never, { page: 1 });
  const ids = answer.ok && answer.value.findings.map(({ compute_id: id }) => id);
  expect(ids).toEqual(['ep-d', 'ep-c', 'ep-b', 'ep-a']);
});

it('findings are summed by what makes the change: one that a policy or hold sets is not done by people', async () => {
  const store = memoryDocumentStore();
  const findings: Finding[] = [
    FOUND,
    { ...FOUND, policy: sleepAfter('1m') },
    { ...FOUND, doneBy: 'policy nights' },
    { ...FOUND, setBy: 'policy nights' },
    { ...FOUND, setBy: 'a hold' },
    { ...FOUND, mayBeSetBy: 'a policy of team-web' },
  ];
  await storeFindings(store, 'p', { account: 'a', atMs: 0, findings: findings.map(findingDocument) });
  const query = { page: 1 };
  const answer = await waste({ store } as never, query);
  if (!answer.ok) throw new Error('refused');
  const found = answer.value;
  expect(found.totals.map(({ change_by, by_policy, findings: many }) => [change_by, by_policy, many])).toEqual([
    ['proposed_policy', true, 1],
    ['existing_policy', true, 1],
    ['changed_policy', false, 2],
    ['unread_policy', false, 1],
    ['people', false, 1],
  ]);
  const page = String(await wasteView({ found, query }));
  expect(page).toMatch(/<div>existing policies and holds, once changed<\/div><\/td><td[^>]*><div>2</);
  expect(page).toMatch(/<div>people<\/div><\/td><td[^>]*><div>1</);
});
