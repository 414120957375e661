import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { startEbb } from '../support/ebb-process.ts';
import { DAY_MS, usageFleet } from '../usage/support.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-cost-'));
let emulator: Emulator;

beforeAll(async () => {
  // One compute never sleeps: then all hours up to the last that counts are known at any time of the day.
  const poller = { class: 'queue_poller', cu: 0.5, everySeconds: 10 } as const;
  const api = { class: 'bursty_api', cu: 1, utcOffsetHours: 0 } as const;
  const office = { class: 'office_users', cu: 1.5, utcOffsetHours: 1 } as const;
  // At any time one of these two sleeps.
  const night = { class: 'night_batch', cu: 1, utcOffsetHours: 1 } as const;
  const fleet = { ...usageFleet({}, [api, office, poller, night]), historyMs: 125 * DAY_MS };
  emulator = await startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet, availabilityCheckMs: 0 });
  writeFileSync(join(folder, 'ebb.yaml'), 'plan: scale\nowners: { "one-*": shop, "*/main": core }\n');
});
afterAll(async () => {
  await emulator.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ebb(...args: string[]) {
  const env = { EBB_API_URL: emulator.url, EBB_API_KEY: emulator.apiKey };
  const command = startEbb(args, { cwd: folder, env });
  const code = await command.ended;
  return { code, text: command.lines.join('\n'), stderr: command.stderr() };
}

describe('ebb cost', () => {
  it('is the bill of this month by owner: the same from the API and from exported files', async () => {
    const api = await ebb('cost', '--json');
    expect(api.code, api.stderr).toBe(0);
    const bill = JSON.parse(api.text);
    expect(bill.lines.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['shop', 'core']));
    expect(bill).toMatchObject({ by: 'owner', figure: 'measured', account_cu_hours: null, difference: null });
    expect(bill.total.usd).toBeCloseTo(bill.total.cu_hours * 0.222, 1);
    expect((await ebb('snapshot', '--out', 'fleet.yaml')).code).toBe(0);
    expect((await ebb('usage', 'export', '--out', 'past')).code).toBe(0);
    const files = JSON.parse((await ebb('cost', '--json', '--usage', 'past/usage.csv', '--fleet', 'fleet.yaml')).text);
    expect({ ...files, quantities: {} }).toEqual({ ...bill, quantities: {} });
    expect(readFileSync(join(folder, 'past/operations.csv'), 'utf8')).toContain('start_compute,finished');
  });

  it('stays the same when sleeping computes are resized', async () => {
    const before = JSON.parse((await ebb('cost', '--json')).text).total;
    const ask = async (path: string, init: object = {}) => {
      const headers = { authorization: `Bearer ${emulator.apiKey}`, 'content-type': 'application/json' };
      return (await (await fetch(`${emulator.url}${path}`, { headers, ...init })).json()) as Record<string, never[]>;
    };
    const { projects = [] } = await ask('/projects?limit=400');
    let resized = 0;
    for (const { id } of projects as { id: string }[]) {
      const { endpoints = [] } = await ask(`/projects/${id}/endpoints`);
      for (const endpoint of endpoints as { id: string; current_state: string }[]) {
        if (endpoint.current_state !== 'idle') continue;
        const size = { autoscaling_limit_min_cu: 4, autoscaling_limit_max_cu: 8 };
        const body = JSON.stringify({ endpoint: size });
        await ask(`/projects/${id}/endpoints/${endpoint.id}`, { method: 'PATCH', body });
        resized += 1;
      }
    }
    expect(resized).toBeGreaterThan(0);
    const after = JSON.parse((await ebb('cost', '--json')).text).total;
    expect(after.unknown_hours).toBe(before.unknown_hours);
    expect(after.cu_hours).toBeGreaterThanOrEqual(before.cu_hours);
  });

  it('exits with 2 if a month that has ended differs from the own figure of the account by more than 1 %', async () => {
    const month = (ago: number) => {
      const now = new Date();
      return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 15)).toISOString().slice(0, 7);
    };
    const last = await ebb('cost', '--month', month(1));
    expect(last.code, last.stderr).toBe(0);
    expect(last.text).toContain('the difference is 0.00 %');
    // The API has forgotten the days of then, and still knows the month.
    const before = await ebb('cost', '--month', month(3), '--json');
    expect(before.code, before.stderr).toBe(2);
    expect(JSON.parse(before.text)).toMatchObject({ figure: 'at_least', difference: expect.closeTo(-1, 1) });
    const asText = await ebb('cost', '--month', month(3));
    expect([asText.code, asText.text]).toEqual([2, expect.stringMatching(/ %\. Exit code 2: it is more than 1 %\.\n/)]);
  });

  it('is the bill of an owner, or of what is selected: the same lines as in the whole bill', async () => {
    const bill = async (...flags: string[]) => {
      const { code, text, stderr } = await ebb('cost', '--json', ...flags);
      expect(code, stderr).toBe(0);
      return JSON.parse(text) as { lines: { name: string; cu_hours: number }[]; total: { cu_hours: number } };
    };
    const [whole, core, shop, both] = await Promise.all([
      ...[
        bill(),
        bill('--owner', 'core'),
        bill('--select', 'projects=one-*'),
        bill('--owner', 'core', '--by', 'project'),
      ],
    ]);
    const lineOf = (name: string) => whole?.lines.find((line) => line.name === name)?.cu_hours ?? Number.NaN;
    expect(core?.lines.find(({ name }) => name === 'core')?.cu_hours).toBeCloseTo(lineOf('core'), 1);
    expect(core?.lines.filter(({ name }) => name !== 'unattributed')).toHaveLength(1);
    expect(shop?.lines.find(({ name }) => name === 'shop')?.cu_hours).toBeCloseTo(lineOf('shop'), 1);
    expect(shop).toMatchObject({ account_cu_hours: null, difference: null, quantities: {} });
    const projects = both?.lines.filter(({ name }) => name !== 'unattributed') ?? [];
    expect(projects.map(({ name }) => name).toSorted()).toEqual(['three-prod', 'two-prod']);
    expect(both?.total.cu_hours).toBeCloseTo(core?.total.cu_hours ?? Number.NaN, 1);
  });

  it('says why there is no usage, and what else there is', async () => {
    const fleet = generateFleet({ projects: 2, computesPerProject: 1, seed: 1 });
    const personal = await startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet, apiKey: emulator.apiKey });
    try {
      const { code, stderr } = await ebb('cost', '--api-url', personal.url);
      expect([code, stderr.split('\n').at(-2)]).toEqual([
        1,
        'ebb: usage of 2 projects without an organization is unavailable: Neon meters it for organizations only. ' +
          'ebb recommend estimates without usage; --usage FILE reads it from a file: docs/cost.md',
      ]);
    } finally {
      await personal.close();
    }
  });

  it.each([
    ['a month of the future', ['--month', '2999-01'], '--month: 2999-01 is not a past month'],
    ['two forms', ['--json', '--csv'], '--json and --csv exclude each other'],
    ['a file that is not there', ['--usage', 'nothing.csv'], '--usage: nothing.csv cannot be read (ENOENT)'],
    ['an owner of nothing', ['--owner', 'nobody'], '--owner: nothing belongs to nobody; owners are '],
    ['a fleet without usage', ['--fleet', 'fleet.yaml'], '--fleet needs --usage'],
  ])('says in one line what is wrong: %s', async (_, args, message) => {
    const { code, stderr } = await ebb('cost', ...args);
    expect([code, stderr.split('\n').at(-2)]).toEqual([1, expect.stringContaining(message)]);
  });
});
