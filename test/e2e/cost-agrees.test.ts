/**
 * What a month has cost is the same to the cent wherever it is shown: by `ebb cost`, in the status and its page, as metrics, and in
 * budgets; also while projects are read, after a restart, and after projects were renamed and deleted and computes resized.
 */
import { request } from 'undici';
import { expect, it, vi } from 'vitest';
import { formatUsd } from '../../src/domain/compute/cost.ts';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';
import type { StatusDocument } from '../../src/ports/documents.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { scrape } from '../support/scrape.ts';

const PATIENCE = { timeout: 120_000, interval: 300 };
/** Most of it is waiting: for a week of usage, for the computes of all projects, and for a deletion to be believed. */
const TIME = { timeout: 480_000 };
const PROJECTS = 300;
const DAY_MS = 86_400_000;
const ENDPOINTS = 'GET /projects/{project_id}/endpoints';

/** Five own what rules on names say, the sixth what its policy selects. */
const BY_RULE = ['web', 'api', 'dev', 'shop', 'data'];
const OWNERS = [...BY_RULE.map((name) => `team-${name}`), 'team-lab'];
const SETTINGS = `api_requests_per_minute: 20000
plan: launch
owners: { ${BY_RULE.map((name) => `"${name}-*": team-${name}`).join(', ')} }
`;
const budget = (name: string, projects: string) => `  - name: month-${name}
    kind: budget
    mode: observe
    select: { projects: ["${projects}"] }
    month: $100000
    steps: [{ at: 100% spent, limits: { size: { max: 1 } } }]
`;
const POLICIES = `version: 1
owner: team-lab
policies:
  - { name: ceiling, kind: limits, mode: observe, select: { projects: ["lab-*"], min_age: 0s }, size: { max: 8 } }
${[...BY_RULE, 'lab'].map((name) => budget(name, `${name}-*`)).join('')}`;

/** 300 projects of six teams with a week behind them, of which only the names say whose they are. */
function sixTeams() {
  const { projects } = generateFleet({ projects: PROJECTS, computesPerProject: 1, seed: 5, loads: true });
  const named = projects.map((project, index) => {
    const number = String(index + 1).padStart(3, '0');
    return { ...project, id: `p-${number}`, name: `${OWNERS[index % OWNERS.length]?.replace('team-', '')}-${number}` };
  });
  return { projects: named, historyMs: 7 * DAY_MS };
}

async function change(platform: Platform, method: 'PATCH' | 'DELETE', path: string, body?: object): Promise<void> {
  const headers = { authorization: `Bearer ${platform.apiKey}`, 'content-type': 'application/json' };
  const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const answer = await request(`${platform.url}${path}`, sent);
  expect(answer.statusCode, await answer.body.text()).toBeLessThan(300);
}

type Dollars = Record<string, number>;

/** What each owner has used by each way to see it; of `ebb cost` only if it is asked. */
async function shown(
  url: string,
): Promise<{ status: Dollars; metrics: Dollars; budgets: Dollars; total: number; knownUntil: string }> {
  const { costs, budgets } = (await (await request(`${url}/api/v1/status`)).body.json()) as StatusDocument;
  const series = (await scrape(url)).text.matchAll(/^ebb_cost_month_to_date_usd\{.*owner="([^"]+)"\} (\S+)$/gm);
  return {
    status: Object.fromEntries((costs?.owners ?? []).map(({ owner, usd }) => [owner, usd ?? Number.NaN])),
    metrics: Object.fromEntries([...series].map(([, owner = '', value = '']) => [owner, cents(Number(value))])),
    budgets: Object.fromEntries(
      budgets.map(({ budget, spent }) => [budget.replace('month-', 'team-'), cents(spent ?? 0)]),
    ),
    total: costs?.total.usd ?? Number.NaN,
    knownUntil: costs?.known_until ?? '',
  };
}

function cents(value: number): number {
  return Math.round(100 * value) / 100;
}

/** Sums of cents that are made in another order are still the same. */
function same(dollars: Dollars): Dollars {
  return Object.fromEntries(Object.entries(dollars).map(([owner, usd]) => [owner, expect.closeTo(usd, 2)]));
}

const sumOf = (dollars: Dollars) => Object.values(dollars).reduce((sum, usd) => sum + usd, 0);

/** What agrees, and up to when usage is in it: with the next hour there is more. */
interface Agreed {
  status: Dollars;
  knownUntil: string;
}

function expectUnchanged(before: Agreed, after: Agreed): void {
  if (after.knownUntil === before.knownUntil) expect(after.status).toEqual(same(before.status));
}

it('agrees everywhere while projects are read, after a restart, renames, resizes and deletions', TIME, async (test) => {
  const folder = await makeFolder({ 'policy.yaml': POLICIES, 'ebb.yaml': SETTINGS });
  test.onTestFinished(() => folder.remove());
  const platform = await startTestPlatform({}, { fleet: sixTeams(), availabilityCheckMs: 0 });
  test.onTestFinished(() => platform.close());
  const observe = { env: { EBB_MODE: 'observe' }, inventoryMs: 5_000, usageMs: 500 };
  const start = () => startTestDaemon({ platform, folder: folder.path, ...observe });
  const eventually = <T>(expected: () => Promise<T>) => vi.waitFor(expected, PATIENCE);

  /** Once every way shows the same, of these owners. */
  const agree = (owners: readonly string[]): Promise<Agreed> =>
    eventually(async () => {
      const { status, metrics, budgets, total, knownUntil } = await shown(daemon.url);
      expect(Object.keys(status).toSorted()).toEqual(owners.toSorted());
      expect(metrics).toEqual(same(status));
      expect(total).toBeCloseTo(sumOf(status), 1);
      const page = (await (await request(`${daemon.url}/?group=owner`)).body.text()).replaceAll('<!-- -->', '');
      for (const usd of Object.values(status)) expect(page).toContain(`${formatUsd(usd)} so far`);
      if (!owners.includes('not read yet')) expect(budgets).toEqual(same(status));
      return { status, knownUntil };
    });

  /** `ebb cost` with what the daemon has collected, or by the control API alone. */
  const cost = async (queue: 'queue' | 'none') => {
    const url = `embedded:${folder.path}/${queue}`;
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: url, EBB_GROUP: 'test' };
    const command = startEbb(['cost', '--json', '--policies', 'policy.yaml'], { cwd: folder.path, env });
    expect(await command.ended, command.stderr()).toBe(0);
    const { lines } = JSON.parse(command.lines.join('\n')) as { lines: { name: string; usd: number }[] };
    return Object.fromEntries(lines.map(({ name, usd }) => [name, cents(usd)]));
  };
  const agreeWithCost = (queue: 'queue' | 'none') =>
    eventually(async () => {
      const agreed = await agree(OWNERS);
      expect(await cost(queue)).toEqual(same(agreed.status));
      return agreed;
    });

  await platform.control('faults', { kind: 'status', status: 403, route: ENDPOINTS });
  let daemon = await start();
  test.onTestFinished(() => daemon.stop());
  // Rules on projects need no more than their list.
  const unread = await agree([...OWNERS.slice(0, -1), 'not read yet']);
  await platform.clearFaults();
  const read = await agreeWithCost('queue');
  const { 'not read yet': ofLab = 0, ...others } = unread.status;
  expectUnchanged({ ...unread, status: { ...others, 'team-lab': ofLab } }, read);

  await daemon.stop();
  daemon = await start();
  expectUnchanged(read, await agree(OWNERS));

  await change(platform, 'PATCH', '/projects/p-001', { project: { name: 'api-more' } });
  await eventually(async () => {
    const { status } = await agree(OWNERS);
    expect(status['team-web']).toBeLessThan(0.99 * (read.status['team-web'] ?? 0));
  });

  const size = { endpoint: { autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 4 } };
  for (let number = 2; number < 12; number += 1) {
    const [project, compute] = [3, 5].map((digits) => String(number).padStart(digits, '0'));
    await change(platform, 'PATCH', `/projects/p-${project}/endpoints/ep-${compute}-1`, size);
  }
  const renamed = await agreeWithCost('none');

  await change(platform, 'DELETE', '/projects/p-012');
  await eventually(async () => expect(daemon.logs.map(({ event }) => event)).toContain('ebb.project_forgotten'));
  expectUnchanged(renamed, await agreeWithCost('queue'));
});
