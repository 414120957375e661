/** What a month costs by owner is the same wherever it is shown, to the cent, whatever happens to projects. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';
import type { StatusDocument } from '../../src/ports/documents.ts';
import { dashboardQueries, filledIn } from '../grafana/dashboard-queries.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus-server.ts';
import { describeWith } from '../support/requirements.ts';
import { scrape } from '../support/scrape.ts';
import { DAY_MS } from '../usage/support.ts';

const PROJECTS = 300;
/** Beside scenarios that use all processors, 300 projects take minutes. */
const PATIENCE = { timeout: 420_000, interval: 500 };
vi.setConfig({ testTimeout: 900_000 });
const ENDPOINTS = 'GET /projects/{project_id}/endpoints';

const AMOUNT = 100_000;
const USD = 0.222;
const OWNERS = ['team-api', 'team-data', 'team-dev', 'team-shop', 'team-web'];
/** As the dashboard of costs asks it. */
const COST_BY_OWNER =
  dashboardQueries().find(({ expr }) =>
    expr.startsWith('sum by (owner) (max by (account, owner) (ebb_cost_month_to_date'),
  )?.expr ?? '';

/** Two accounts: one may ask for usage 25 times a minute, which is less than 300 projects take. */
const ACCOUNTS = ['red', 'blue'] as const;
const SETTINGS = `plan: scale
api_requests_per_minute: 100000
accounts:
  - { name: red, api_key_env: EBB_API_KEY_RED, organization: org-red }
  - { name: blue, api_key_env: EBB_API_KEY_BLUE, organization: org-blue }
owners: { "web-*": team-web, "api-*": team-api, "lab-*": team-lab, "shop-*": team-shop, "data-*/main": team-data }
`;
const budget = (name: string, month: string) => `  - name: ${name}
    kind: budget
    mode: observe
    select: { projects: ["${name}-*"] }
    month: ${month}
    steps: [{ at: 100% spent, limits: { size: { max: 1 } } }]
`;
const POLICY = `version: 1
owner: team-dev
policies:
  - name: of-dev
    kind: limits
    mode: observe
    select: { projects: ["dev-*"] }
    size: { max: 8 }
${budget('web', `$${AMOUNT}`)}${budget('dev', `$${AMOUNT}`)}${budget('data', `${AMOUNT} CUh`)}`;

type ByOwner = Record<string, number>;
interface CostJson {
  lines: { name: string; usd: number }[];
  total: { unknown_hours: number };
}
interface EmulatorState {
  computes: { compute_id: string; state: string }[];
}

/** Of whose teams the names of the generated projects are, one after the other. */
const TEAMS = ['web', 'api', 'dev', 'shop', 'data'] as const;
/** Ids say nothing of the team: globs match them as well as names. */
const projectOf = (index: number) => `p-${String(index + 1).padStart(5, '0')}`;
const accountOf = (index: number) => (index % 2 === 0 ? 'red' : 'blue');
const keyOf = (account: string) => `napi_${account}_1`;
const totalOf = (sums: ByOwner) => Object.values(sums).reduce((all, one) => all + one, 0);
const pick = (sums: ByOwner, isWanted: (owner: string) => boolean): ByOwner =>
  Object.fromEntries(Object.entries(sums).filter(([owner]) => isWanted(owner)));

/** Over the accounts. */
function sumsOf(parts: readonly (readonly [key: string, value: number])[]): ByOwner {
  const sums: ByOwner = {};
  for (const [key, value] of parts) sums[key] = (sums[key] ?? 0) + value;
  return sums;
}

/** To the cent: some figures are sums of two that were rounded, each by less than a cent, so that they sum to their total. */
function expectSame(shown: ByOwner, known: ByOwner, what: string): void {
  expect(Object.keys(shown).toSorted(), what).toEqual(Object.keys(known).toSorted());
  for (const [owner, usd] of Object.entries(known)) {
    expect(Math.abs((shown[owner] ?? Number.NaN) - usd), `${what}: ${owner} ${shown[owner]} and ${usd}`).toBeLessThan(
      0.02,
    );
  }
}

describeWith('prometheus', 'what 300 projects of six owners cost', () => {
  let platform: Platform;
  let daemon: TestDaemon;
  let prometheus: Prometheus;
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let env: Record<string, string>;
  beforeAll(async () => {
    folder = await makeFolder({ 'ebb.yaml': SETTINGS, 'policy.yaml': POLICY });
    const { projects } = generateFleet({ projects: PROJECTS, computesPerProject: 1, seed: 1, loads: true });
    const inAccounts = projects.map((project, index) => ({
      ...project,
      id: projectOf(index),
      account: accountOf(index),
    }));
    const fleet = { projects: inAccounts, historyMs: 7 * DAY_MS };
    platform = await startTestPlatform({}, { fleet, availabilityCheckMs: 0 });
    for (const account of ACCOUNTS) {
      await platform.control('keys', {
        kind: 'organization',
        org: `org-${account}`,
        key: keyOf(account),
        name: account,
      });
    }
    env = {
      ...{ EBB_API_KEY: '', EBB_API_KEY_RED: keyOf('red'), EBB_API_KEY_BLUE: keyOf('blue'), EBB_MODE: 'observe' },
      ...{ EBB_API_URL: platform.url, EBB_POLICIES: join(folder.path, 'policy.yaml') },
    };
  });
  afterAll(async () => {
    await prometheus?.close();
    await daemon?.stop();
    await platform?.close();
    await folder?.remove();
  });

  const startDaemon = async () => {
    daemon = await startTestDaemon({ platform, folder: folder.path, env, usageMs: 300 });
  };
  /** Sends a request of a person, about a project by its number. */
  const send = async (method: 'PATCH' | 'DELETE', index: number, { path = '', body = {} } = {}) => {
    const headers = { authorization: `Bearer ${keyOf(accountOf(index))}`, 'content-type': 'application/json' };
    const url = `${platform.url}/projects/${projectOf(index)}${path}`;
    const answer = await request(url, { method, headers, ...(method === 'PATCH' && { body: JSON.stringify(body) }) });
    expect(answer.statusCode, await answer.body.text()).toBe(200);
  };
  /** What was deleted, also by an attempt that failed. */
  const deleted = new Set<number>();
  /** Numbers of the two projects that have used most of those that began with a team's name, which are every fifth. */
  const busiest = async (team: (typeof TEAMS)[number]): Promise<[number, number]> => {
    const used = Object.entries(await inMetrics('ebb_usage_month_cu_seconds', 'project'))
      .map(([project, cuSeconds]) => ({ index: Number(project.slice(-5)) - 1, cuSeconds }))
      .filter(({ index }) => TEAMS[index % TEAMS.length] === team && !deleted.has(index))
      .toSorted((a, b) => b.cuSeconds - a.cuSeconds);
    return [used[0]?.index ?? 0, used[1]?.index ?? 0];
  };
  const rename = (index: number, name: string) => send('PATCH', index, { body: { project: { name } } });

  const status = async () => {
    const shown = (await (await request(`${daemon.url}/api/v1/status`)).body.json()) as StatusDocument;
    if (shown.costs === null) throw new Error('nothing is measured yet');
    return { ...shown, costs: shown.costs };
  };
  const inMetrics = async (name: string, label: string): Promise<ByOwner> => {
    const lines = (await scrape(daemon.url)).text.matchAll(
      new RegExp(`^${name}\\{.*${label}="([^"]+)".*\\} (\\S+)$`, 'gm'),
    );
    return sumsOf([...lines].map(([, key = '', value]) => [key, Number(value)]));
  };
  const onDashboard = async (): Promise<ByOwner> => {
    const asked = encodeURIComponent(filledIn(COST_BY_OWNER));
    type Answer = { result: { metric: { owner: string }; value: [number, string] }[] };
    const { result } = await prometheus.ask<Answer>(`query?query=${asked}`);
    return sumsOf(result.map(({ metric, value }) => [metric.owner, Number(value[1])]));
  };
  const onPage = async (): Promise<ByOwner> => {
    const html = (await (await request(`${daemon.url}/?group=owner`)).body.text()).replaceAll('<!-- -->', '');
    const amounts = html
      .split('<tr')
      .slice(1)
      .map((row) => row.split('</tr>')[0] ?? '')
      .flatMap((row) => {
        const owner = />(team-\w+)</.exec(row)?.[1];
        const parts = [...row.matchAll(/\$([\d.,]+) so far/g)];
        return owner === undefined
          ? []
          : parts.map(([, usd = '']) => [owner, Number(usd.replaceAll(',', ''))] as const);
      });
    return sumsOf(amounts);
  };
  /** `isAlone`: it finds no daemon and no store. */
  const inCost = async (isAlone = false): Promise<{ owners: ByOwner; unknownHours: number }> => {
    const cwd = isAlone ? join(folder.path, 'alone') : folder.path;
    await mkdir(cwd, { recursive: true });
    const store = isAlone ? {} : { EBB_QUEUE_URL: `embedded:${folder.path}/queue`, EBB_GROUP: 'test' };
    const run = startEbb(['cost', '--json', '--config', join(folder.path, 'ebb.yaml')], {
      cwd,
      env: { ...env, ...store },
    });
    expect(await run.ended, run.stderr()).toBe(0);
    const { lines, total } = JSON.parse(run.lines.join('\n')) as CostJson;
    return { owners: sumsOf(lines.map(({ name, usd }) => [name, usd])), unknownHours: total.unknown_hours };
  };

  /** Waits until everything that shows costs agrees, and is as expected; gives it by owner. */
  const agreed = (isExpected: (owners: ByOwner, shown: StatusDocument) => void): Promise<ByOwner> =>
    vi.waitFor(async () => {
      const shown = await status();
      const owners = sumsOf(shown.costs.owners.map(({ owner, usd }) => [owner, usd ?? Number.NaN]));
      isExpected(owners, shown);
      expect(Math.abs(totalOf(owners) - (shown.costs.total.usd ?? Number.NaN))).toBeLessThan(0.1);
      expectSame(await inMetrics('ebb_cost_month_to_date_usd', 'owner'), owners, 'metrics');
      expectSame(await onDashboard(), owners, 'dashboard');
      expectSame(
        await onPage(),
        pick(owners, (owner) => owner.startsWith('team-')),
        'page',
      );
      return owners;
    }, PATIENCE);
  /** The same with all projects read: then budgets and `ebb cost` agree, too. */
  const allAgree = (isExpected: (owners: ByOwner, shown: StatusDocument) => void = () => {}) =>
    vi.waitFor(async () => {
      const owners = await agreed((known, shown) => {
        expect(shown.unread_projects).toBe(0);
        expect(known).not.toHaveProperty('not read yet');
        isExpected(known, shown);
      });
      const ratios = await inMetrics('ebb_budget_spent_ratio', 'policy');
      const spent = {
        'team-data': (ratios.data ?? 0) * AMOUNT * USD,
        'team-dev': (ratios.dev ?? 0) * AMOUNT,
        'team-web': (ratios.web ?? 0) * AMOUNT,
      };
      expectSame(
        spent,
        pick(owners, (owner) => owner in spent),
        'budgets',
      );
      const { budgets } = await status();
      const inBudgets = budgets.map(({ budget: name, spent: amount, month }): [string, number] => [
        `team-${name}`,
        (amount ?? Number.NaN) * (month.unit === 'usd' ? 1 : USD),
      ]);
      expectSame(sumsOf(inBudgets), spent, 'budgets in status');
      expectSame((await inCost()).owners, owners, 'ebb cost');
      return owners;
    }, PATIENCE);
  /** `ebb cost` that reads everything from the control API. */
  const agreesAlone = (owners: ByOwner) =>
    vi.waitFor(async () => {
      const alone = await inCost(true);
      expectSame(alone.owners, owners, 'ebb cost without a daemon');
      expect(alone.unknownHours).toBe((await status()).costs.total.unknown_hours);
    }, PATIENCE);

  it('tells during the start what is not read yet, and gives it to nobody', async () => {
    // An attempt that failed leaves them, and stored readings.
    await Promise.all([daemon?.stop(), prometheus?.close(), platform.clearFaults()]);
    await rm(join(folder.path, 'queue'), { recursive: true, force: true });
    // Some projects are read at the start; then none until the fault is cleared.
    await platform.control('faults', { kind: 'status', status: 500, route: ENDPOINTS, share: 0.8 });
    await startDaemon();
    await platform.control('faults', { kind: 'status', status: 500, route: ENDPOINTS });
    expect(daemon.logs.find(({ event }) => event === 'ebb.start')?.msg).toMatch(
      /; \d+ are not read yet, and each is shown only once it is read$/,
    );
    prometheus = await startPrometheus({ folder: folder.path, target: new URL(daemon.url).host });
    const partly = await agreed((owners, { unread_projects: unread }) => {
      expect(unread).toBeGreaterThan(0);
      expect(owners['not read yet']).toBeGreaterThan(0);
    });
    await platform.clearFaults();
    const owners = await allAgree();
    expect(
      Object.keys(owners)
        .filter((owner) => owner.startsWith('team-'))
        .toSorted(),
    ).toEqual(OWNERS);
    expect(Math.abs(totalOf(owners) - totalOf(partly))).toBeLessThan(0.1);
    await agreesAlone(owners);
  });

  it('is the same after a restart', async () => {
    const before = await allAgree();
    await prometheus.close();
    await daemon.stop();
    await startDaemon();
    prometheus = await startPrometheus({ folder: join(folder.path, 'again'), target: new URL(daemon.url).host });
    await allAgree((owners) => expectSame(owners, before, 'before'));
  });

  it('moves with the names of projects, and not with the sizes of computes', async () => {
    const before = await allAgree();
    const [[web], [api], [dev]] = await Promise.all([busiest('web'), busiest('api'), busiest('dev')]);
    await rename(web, 'lab-one');
    await rename(api, 'lab-two');
    await rename(dev, 'web-three');
    const owners = await allAgree((shown) => expect(shown['team-lab']).toBeGreaterThan(0));
    expect(totalOf(owners)).toBeCloseTo(totalOf(before), 1);
    const { computes } = (await (await request(`${platform.origin}/_emulator/state`)).body.json()) as EmulatorState;
    const asleep = computes.filter(({ state }) => state === 'idle').slice(0, 10);
    for (const { compute_id: id } of asleep) {
      const body = { endpoint: { autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 4 } };
      await send('PATCH', Number(id.split('-')[1]) - 1, { path: `/endpoints/${id}`, body });
    }
    expect(asleep).toHaveLength(10);
    await agreesAlone(owners);
    await allAgree((shown) => expectSame(shown, owners, 'before'));
  });

  it('stays with the owners and budgets of deleted projects', async () => {
    const before = await allAgree();
    const [[web, renamed], [api], [dev], [data]] = await Promise.all([
      busiest('web'),
      busiest('api'),
      busiest('dev'),
      busiest('data'),
    ]);
    for (const index of [web, api, dev, data]) {
      await send('DELETE', index);
      deleted.add(index);
    }
    const left = (shown: StatusDocument) => Object.values(shown.computes).reduce((sum, count) => sum + count, 0);
    await allAgree((owners, shown) => {
      expect(left(shown)).toBe(PROJECTS - deleted.size);
      expectSame(owners, before, 'before');
    });
    // Once a rename is shown, the deletions are in what is shown as well.
    await rename(renamed, 'api-four');
    const after = await allAgree((owners) => expect(owners['team-api']).toBeGreaterThan(before['team-api'] ?? 0));
    const isOther = (owner: string) => owner !== 'team-api' && owner !== 'team-web';
    expectSame(pick(after, isOther), pick(before, isOther), 'before');
  });
});
