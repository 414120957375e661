import { expect, it } from 'vitest';
import { FLEET_FACTS, sourceFromDaemon } from '../../src/app/situation/stored-source.ts';
import type { Operator } from '../../src/ports/operator.ts';
import type { Store } from '../../src/ports/store.ts';
import type { RecordsDocument } from '../../src/ports/stored-documents.ts';
import { aRecord } from '../support/builders.ts';

const documentOf = (project: string): RecordsDocument => ({
  project_id: project,
  records: { [`ep-of-${project}`]: aRecord() },
  samples: {},
});

const now = () => 0;

/** A daemon that knows two projects; asked for a name that is no compute's, it tells what it knows of the first. */
function daemon(): Operator {
  const page = <T>(items: T[]) => ({ ok: true, value: { items, next: null } });
  const operator = {
    records: async ({ compute }: { compute?: string }) =>
      page(compute === undefined ? [documentOf('p-1'), documentOf('p-2')] : [documentOf('p-1')]),
    holds: async () => page([]),
    freezes: async () => page([]),
    readings: async () => ({ ok: false, error: { code: 'unavailable', message: '' } }),
    status: async () => ({ ok: false, error: { code: 'unavailable', message: '' } }),
  };
  return operator as unknown as Operator;
}

it.each(['constructor', 'toString', '__proto__'])('a name that objects inherit is no compute: %s', async (name) => {
  const told = await sourceFromDaemon(daemon(), { compute: name, now });
  expect(await told?.projectOf(name)).toBeUndefined();
  const { records } = (await told?.facts({ projectIds: [], computeIds: [], nowMs: 0 })) ?? {};
  expect([...(records?.keys() ?? [])]).toEqual(['ep-of-p-1', 'ep-of-p-2']);
});

it('of a compute that the daemon knows, records of its project are enough', async () => {
  const told = await sourceFromDaemon(daemon(), { compute: 'ep-of-p-1', now });
  expect(await told?.projectOf('ep-of-p-1')).toBe('p-1');
  const { records } = (await told?.facts({ projectIds: [], computeIds: [], nowMs: 0 })) ?? {};
  expect([...(records?.keys() ?? [])]).toEqual(['ep-of-p-1']);
});

it('the daemon tells what guards said of each compute', async () => {
  const state = { guard: 'latency', key: 'k', atMs: 1, verdict: { state: 'healthy', message: '0.1' } } as const;
  const asked = daemon();
  const records = asked.records.bind(asked);
  asked.records = async (query) => {
    const page = await records(query);
    if (page.ok) for (const one of page.value.items) one.guards = { [`ep-of-${one.project_id}`]: [state] };
    return page;
  };
  const told = await sourceFromDaemon(asked, { now });
  const { guards } = (await told?.facts({ projectIds: [], computeIds: [], nowMs: 0 })) ?? {};
  expect(guards?.get('ep-of-p-2')).toEqual([state]);
});

it('records are read again after a long read of the fleet: ebb has changed computes meanwhile', async () => {
  const asked = daemon();
  let lastSentAtMs = 1;
  const recorded = () => ({ ...documentOf('p-1'), records: { 'ep-1': aRecord({ lastSentAtMs }) } });
  asked.records = async () => ({ ok: true, value: { items: [recorded()], next: null } });
  let nowMs = 0;
  const told = await sourceFromDaemon(asked, { now: () => nowMs });
  const sent = async () => {
    const facts = await told?.facts({ projectIds: [], computeIds: [], nowMs });
    return facts?.records.get('ep-1')?.lastSentAtMs;
  };
  lastSentAtMs = 2;
  expect(await sent()).toBe(1);
  nowMs = 270_000;
  expect(await sent()).toBe(2);
  // A daemon that has ended meanwhile has told what it knew.
  asked.holds = async () => ({ ok: false, error: { code: 'unavailable', message: '' } });
  expect(await sent()).toBe(1);
});

it('each kind of fact of the whole fleet is read though the store is broken elsewhere', async () => {
  const broken = async () => {
    throw new Error('broken');
  };
  const store = { projectIds: broken, holds: broken, freezes: broken, document: async () => undefined };
  expect(await FLEET_FACTS.budgets.readFromStore(store as unknown as Store, 0)).toEqual([]);
  const withHolds = { ...store, holds: async () => [], document: broken };
  expect(await FLEET_FACTS.holds.readFromStore(withHolds as unknown as Store, 0)).toEqual([]);
});
