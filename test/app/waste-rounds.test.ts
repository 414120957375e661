import { expect, it } from 'vitest';
import { beginAtBoundary } from '../../src/app/fleet/at-boundary.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { OPERATIONS_KEY } from '../../src/app/readings/reading.ts';
import { FINDINGS } from '../../src/app/recommend/finding-document.ts';
import { startWasteRounds, type WasteRoundsDeps } from '../../src/app/recommend/waste-rounds.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aRecord, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';

const NOW = 1_790_000_000_000;
const SECOND = 1_000;

/** A leader's round over 200 projects of each of two accounts, run by hand: how many were asked for their operations, by account. */
function start(nextBoundaryMs?: number) {
  const asked = new Map<string, number>();
  const clock = { now: () => NOW, monotonicMs: () => NOW };
  const fleet = createFleet({ clock } as never);
  for (const account of ['a', 'b']) {
    for (let index = 0; index < 200; index += 1) {
      const [projectId, computeId] = [`p-${account}-${index}`, `ep-${account}-${index}`];
      const project = { account, projectId, name: projectId, regionId: 'r', updatedAtMs: 0 };
      const compute = aCompute({ account, projectId, computeId });
      fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: NOW, readAtMonotonicMs: NOW });
      const evaluated = { compute, record: aRecord(), ...(account === 'a' && { nextBoundaryMs }) };
      fleet.putEvaluated(evaluated as EvaluatedCompute);
    }
  }
  let round = async () => {};
  const store = { ...memoryDocumentStore(), ...memoryUsageStore() };
  const writeBacks: (() => Promise<void>)[] = [];
  const gauges = new Map<string, number>();
  startWasteRounds({
    ...{
      fleet,
      rules: currentRules(),
      store,
      overrides: { holds: [] },
    },
    storeWatch: { onLoss: (writeBack: () => Promise<void>) => writeBacks.push(writeBack) },
    ...{ leaderLease: { isHeld: () => true }, rhythm: { wasteMs: 60 * SECOND } },
    telemetry: {
      log: memoryLog(),
      metrics: {
        set: (name: string, _labels: object, value: number) => void gauges.set(name, value),
        clear: (name: string) => void gauges.delete(name),
      },
    },
    clock: {
      ...clock,
      every(_ms: number, each: () => Promise<void>) {
        round = each;
        return { close: async () => {} };
      },
    },
    api: {
      async operationsFrom({ account }: { account: string }) {
        asked.set(account, (asked.get(account) ?? 0) + 1);
        return { ok: false, error: { code: 'unavailable', message: '' } };
      },
    },
    runInBackground: (_task: string, each: () => Promise<void>) => each().catch(() => {}),
  } as unknown as WasteRoundsDeps);
  return {
    ...{ fleet, asked, store, gauges, round: () => round() },
    lose: async () => {
      await FINDINGS.delete(store, [...(await FINDINGS.all(store)).keys()]);
      for (const writeBack of writeBacks) await writeBack();
    },
  };
}

it('what was found less than a day ago is found again only after the store has lost it', async () => {
  const { fleet, asked, store, round, lose } = start();
  Object.assign(fleet, { listed: () => ({}) });
  const ids = [...fleet.cachedProjects()].map(({ project }) => project.projectId);
  for (const id of ids) await FINDINGS.put(store, id, { account: 'a', atMs: NOW, findings: [] });
  await store.putUsage(OPERATIONS_KEY, new Map(ids.map((id) => [id, new Uint8Array()])));
  await round();
  await round();
  expect(asked).toEqual(new Map());
  await lose();
  await round();
  expect([...asked.keys()]).toEqual(['a', 'b']);
});

it('the metrics of what can be saved stay after a loss of the store, until it is found again', async () => {
  const { fleet, asked, store, gauges, round, lose } = start();
  Object.assign(fleet, { listed: () => ({}) });
  const saves = { cu_hours_month: { low: 5, mid: 5, high: 5 }, usd_month: null };
  const findings = [{ owner: 'team', finding: 'size', figure: 'exact', saves }];
  await FINDINGS.put(store, 'p-a-0', { account: 'a', atMs: NOW, findings } as never);
  await store.putUsage(OPERATIONS_KEY, new Map([['p-a-0', new Uint8Array()]]));
  await round();
  expect(gauges.get('ebb_waste_month_cu_hours')).toBe(5);
  await lose();
  await round();
  expect(asked.get('a')).toBeGreaterThan(0);
  expect(gauges.get('ebb_waste_month_cu_hours')).toBe(5);
});

it('a round reads of each account no more than the background’s share of a minute', async () => {
  const { asked, round } = start();
  await round();
  expect(asked).toEqual(
    new Map([
      ['a', 35],
      ['b', 35],
    ]),
  );
});

it.each([-60, 10, 60, 130])('nothing is read while the account’s herd has a boundary in %i s', async (seconds) => {
  const { asked, round } = start(NOW + seconds * SECOND);
  await round();
  expect([...asked.keys()]).toEqual(['b']);
});

it('nothing is read while the account’s computes are taken over a boundary', async () => {
  const { fleet, asked, round } = start();
  beginAtBoundary(fleet, NOW - SECOND, 'a');
  await round();
  expect([...asked.keys()]).toEqual(['b']);
});
