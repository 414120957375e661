import { describe, expect, it } from 'vitest';
import { listAudit } from '../../src/app/operator/audit.ts';
import type { OperatorParts } from '../../src/app/operator/parts.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { AuditQuery } from '../../src/ports/store.ts';

const LINES = 5_000;

/** A store with many lines, of which every hundredth is of team-web; it counts how often it is asked. */
function manyLines() {
  const all = Array.from({ length: LINES }, (_, index): HistoryEntry => {
    const owner = index % 100 === 0 ? 'team-web' : 'team-api';
    return {
      atMs: LINES - index,
      projectId: 'p',
      computeId: `ep-${index}`,
      kind: 'write',
      setHash: '',
      owner,
      reasons: [],
    };
  });
  let asked = 0;
  const audit = async ({ limit, after }: AuditQuery) => {
    asked += 1;
    const from = Number(after ?? 0);
    const entries = all.slice(from, from + limit);
    return { entries, ...(entries.length === limit && { next: String(from + limit) }) };
  };
  const parts = { store: { audit } } as unknown as OperatorParts;
  return { parts, timesAsked: () => asked };
}

it('is narrowed by what, by whom, by which policy and to a request', async () => {
  const line = (computeId: string, more: Partial<HistoryEntry>): HistoryEntry => ({
    ...{ atMs: 1, projectId: 'p', computeId, kind: 'write', setHash: '', reasons: [] },
    ...more,
  });
  const entries = [
    line('ep-a', { policy: 'hours', requestId: 'r-1' }),
    line('ep-b', { kind: 'hold', who: 'ann', requestId: 'r-2' }),
    line('ep-c', { reasons: [{ code: 'otherwise', policy: 'hours', message: '' }], requestId: 'r-1' }),
  ];
  const parts = { store: { audit: async () => ({ entries }) } } as unknown as OperatorParts;
  const idsOf = async (query: Partial<Parameters<typeof listAudit>[1]>) => {
    const page = await listAudit(parts, { sinceMs: 0, untilMs: 9, limit: 5, ...query });
    return page.ok && page.value.items.map(({ compute_id }) => compute_id);
  };
  expect(await idsOf({})).toEqual(['ep-a', 'ep-b', 'ep-c']);
  expect(await idsOf({ kind: 'hold' })).toEqual(['ep-b']);
  expect(await idsOf({ who: 'ann' })).toEqual(['ep-b']);
  expect(await idsOf({ policy: 'hours' })).toEqual(['ep-a', 'ep-c']);
  expect(await idsOf({ request: 'r-1', policy: 'hours' })).toEqual(['ep-a', 'ep-c']);
  expect(await idsOf({ request: 'r-2', kind: 'write' })).toEqual([]);
});

describe('the audit of an owner', () => {
  it('is looked through by pages, and goes on after the last line that was shown', async () => {
    const { parts, timesAsked } = manyLines();
    const query = { owner: 'team-web', sinceMs: 0, untilMs: LINES, limit: 7 };
    const ids: (string | null)[] = [];
    let after: string | undefined;
    do {
      const page = await listAudit(parts, { ...query, compute: undefined, after });
      if (!page.ok) throw new Error(page.error.message);
      expect(page.value.items.length).toBeLessThanOrEqual(7);
      ids.push(...page.value.items.map((one) => one.compute_id));
      after = page.value.next ?? undefined;
    } while (after !== undefined);
    expect(ids).toEqual(Array.from({ length: LINES / 100 }, (_, index) => `ep-${index * 100}`));
    expect(timesAsked()).toBeLessThan(40);
  });
});
