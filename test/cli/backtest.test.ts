import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCsv } from '../../src/cli/backtest/read-csv.ts';
import { variantsOf } from '../../src/cli/backtest/variants.ts';
import { aHeadroom } from '../support/builders.ts';
import { startEbb } from '../support/ebb-process.ts';
import { startMetricsServer } from '../support/metrics-server.ts';
import { fleetFile } from './fleet-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-backtest-'));
const START = Date.parse('2026-03-02T00:00:00Z');
const MINUTE_MS = 60_000;

const policies = (url = 'http://127.0.0.1:9') => `version: 1
sources:
  counts: { from: prometheus, url: "${url}", query: 'sum(c{id="$compute"})', every: 1m }
  sql: { from: postgres, dsn_env: EBB_DSN_X }
policies:
  - name: room
    kind: headroom
    select: { projects: ["web-*"] }
    connections: counts
    target: 80%
    max_size: 2
    disruption: { lower: { when: any }, cooldown: 0s }
  - name: by-day
    kind: schedule
    select: { projects: ["web-*"] }
    windows: [{ at: Mon-Fri 02:00-03:00, size: 1 }]
    otherwise: baseline
    disruption: { lower: { when: any }, cooldown: 0s }
`;

/** An hour of 10, an hour of 100, two of 10, of each of these computes. */
const counts = (...ids: string[]) =>
  Array.from({ length: 240 }, (_, minute) => {
    const time = new Date(START + minute * MINUTE_MS).toISOString();
    return ids.map((id) => `${time},${id},${Math.floor(minute / 60) === 1 ? 100 : 10}\n`).join('');
  }).join('');

beforeAll(() => {
  writeFileSync(join(folder, 'policy.yaml'), policies());
  writeFileSync(join(folder, 'counts.csv'), `time,compute,connections\n${counts('ep-shop', 'ep-other')}`);
  writeFileSync(join(folder, 'fleet.json'), fleetFile({ 'web-shop/ep-shop': { max_cu: 0.25 }, 'dev/ep-other': {} }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function ebb(...args: string[]) {
  const run = startEbb(['backtest', ...args], { cwd: folder, env: { EBB_POLICIES: 'policy.yaml' } });
  const status = await run.ended;
  return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
}

const ofFile = (...args: string[]) => ebb('--policy', 'room', '--connections', 'counts.csv', ...args);

describe('ebb backtest', () => {
  it('shows what the policy would have done, what other numbers would, and what would have been without it', async () => {
    const { status, stdout, stderr } = await ofFile('ep-shop', '--targets', '80%,90%', '--windows', '30m,1h');
    expect([status, stderr]).toEqual([0, '']);
    expect(`\n${stdout}\n`).toBe(`
room on 1 compute, Mon 2 Mar 2026, 00:00 to Mon 2 Mar 2026, 04:00 (UTC)

target   window  raises  lowers  restarts  above target  refused  CU-hours
80% *    30m          1       1         2         0 min        0     1–1.4
80%      1h           1       1         2         0 min        0     1–1.5
90%      30m          0       0         0         0 min        0         1
90%      1h           0       0         0         0 min        0         1
without               0       0         0        60 min        0         1

* as written. CU-hours from the minimum to the maximum of the size, while awake: docs/backtest.md.
`);
  });

  it('counts all policies that select a compute of a fleet, and draws', async () => {
    const args = ['--fleet', 'fleet.json', '--json', '--svg', 'out.svg', '--windows', '30m'];
    const { status, stdout, stderr } = await ofFile(...args);
    expect(status).toBe(0);
    expect(stderr).toBe('note: left out: room does not select ep-other\ndrawn into out.svg');
    const json = JSON.parse(stdout);
    expect(json).toMatchObject({ from: '2026-03-02T00:00:00Z', to: '2026-03-02T04:00:00Z', policy: 'room' });
    expect(json.as_written).toMatchObject({
      target: '80%',
      window: '30m',
      raises: 2,
      lowers: 1,
      cu_hours: { low: 1.75 },
    });
    expect(json.without).toMatchObject({ raises: 1, lowers: 1, minutes_above_target: 60 });
    expect(json.alternatives).toEqual([]);
    const changes = json.computes[0].changes.map(({ at, policy, after }: Record<string, unknown>) => [
      at,
      policy,
      after,
    ]);
    expect(changes).toEqual([
      ['2026-03-02T01:00:00Z', 'room', { min_cu: 0.25, max_cu: 0.5 }],
      ['2026-03-02T02:00:00Z', 'by-day', { min_cu: 1, max_cu: 1 }],
      ['2026-03-02T03:00:00Z', 'by-day', { min_cu: 0.25, max_cu: 0.25 }],
    ]);
    const svg = readFileSync(join(folder, 'out.svg'), 'utf8');
    expect(svg.match(/<polygon class="(raise|lower)"/g)).toHaveLength(3);
    expect(svg).toContain('01:00: 0.25 to 0.25-0.5 CU by room, 100 disconnected');
  });

  it('draws the first twenty computes, and says of how many', async () => {
    const rows = Array.from({ length: 21 }, (_, index) => `1772409600,ep-${index},10\n`).join('');
    writeFileSync(join(folder, 'many.csv'), `time,compute,connections\n${rows}`);
    await ebb('--policy', 'room', '--connections', 'many.csv', '--svg', 'many.svg');
    const svg = readFileSync(join(folder, 'many.svg'), 'utf8');
    expect(svg).toContain('<title id="title">room on the first 20 of 21 computes, Mon 2 Mar 2026, 00:00 to ');
    expect(svg.match(/>ep-\d+<\/text>/g)).toHaveLength(20);
  });

  it('says of which of the named computes nothing is in the file, and shows ids as they may be shown', async () => {
    const lines = ['ep-shop', 'ep-a\u001b[2J', 'ep-b', 'ep-c', `ep-${'d'.repeat(99)}`].map(
      (id) => `1772409600,${id},119,119`,
    );
    writeFileSync(join(folder, 'full.csv'), `time,compute,connections,max_connections\n${lines.join('\n')}\n`);
    const of = (...args: string[]) => ebb('--policy', 'room', '--connections', 'full.csv', ...args);
    const { stderr } = await of();
    expect(stderr.split('\n')).toEqual([
      'note: ep-shop, ep-a?[2J, ep-b and 2 more were full at 5 of 5 counts: more may have wanted to connect than was recorded',
      'note: ep-shop, ep-a?[2J, ep-b and 2 more had max_connections 119, which the profile specification gives at no size: is it the right one?',
    ]);
    const computes = { 'web-shop/ep-shop': {}, 'web-x/ep-x': {}, 'web-y/ep-y': {} };
    writeFileSync(join(folder, 'three.json'), fleetFile(computes));
    const fleet = await of('--fleet', 'three.json', 'ep-shop');
    expect([fleet.status, fleet.stderr]).toEqual([0, expect.not.stringContaining('left out')]);
    expect((await of('--fleet', 'three.json', 'ep-*')).stderr).toContain(
      'left out: 2 computes without recorded counts',
    );
  });

  it('asks a Prometheus for what it remembers', async () => {
    const asked: string[] = [];
    const values = [0, 1, 2].map((minute) => [(START + minute * MINUTE_MS) / 1000, minute === 1 ? 'NaN' : '100']);
    const server = await startMetricsServer((query, response) => {
      asked.push(query);
      response.end(
        JSON.stringify({ status: 'success', data: { resultType: 'matrix', result: [{ metric: {}, values }] } }),
      );
    });
    writeFileSync(join(folder, 'asking.yaml'), policies(server.url));
    writeFileSync(join(folder, 'allowing.yaml'), `sources_allowed_origins: ["${server.url}"]\n`);
    const span = ['--from', '2026-03-02', '--to', '2026-03-02T00:03'];
    const args = [
      '--config',
      'allowing.yaml',
      '--policies',
      'asking.yaml',
      '--policy',
      'room',
      '--prometheus',
      ...span,
      '--json',
    ];
    const { status, stdout } = await ebb(...args, 'ep-shop', 'ep-shop');
    await server.close();
    expect([status, asked]).toEqual([0, ['sum(c{id="ep-shop"})']]);
    expect(JSON.parse(stdout).computes).toMatchObject([{ compute_id: 'ep-shop', raises: 1 }]);
    const gone = await ebb(...args, 'ep-shop');
    expect(gone).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^ebb: source counts, ep-shop: .*\(unavailable\)$/),
    });
  });

  it.each<[string, string[], string]>([
    [
      'an unknown policy',
      ['--policy', 'rooom', '--connections', 'counts.csv'],
      'no policy is called rooom; did you mean "room"?',
    ],
    [
      'another kind',
      ['--policy', 'by-day', '--connections', 'counts.csv'],
      'by-day is of kind schedule, not headroom; of kind headroom: room',
    ],
    [
      'no counts',
      ['--policy', 'room'],
      'say where the counts are: --connections FILE.csv, or --prometheus with --from',
    ],
    ['no such compute', ['--policy', 'room', '--connections', 'counts.csv', 'ep-x'], 'no compute is called ep-x'],
    [
      'a source without memory',
      ['--policy', 'room', '--prometheus', '--source', 'sql', 'ep-a'],
      'the source sql is from postgres',
    ],
    [
      'no step',
      ['--policy', 'room', '--prometheus', '--step', '500ms'],
      "'500ms' is invalid. expected a duration of 1s",
    ],
  ])('says in one line what is wrong: %s', async (_what, args, expected) => {
    const { status, stderr } = await ebb(...args);
    expect([status, stderr.split('\n').length]).toEqual([1, 1]);
    expect(stderr).toContain(expected);
  });
});

describe('a file of counts', () => {
  const read = (text: string) => parseCsv(text, 'c.csv');

  it('may have its columns and rows in any order, quotes, a mark at its start, and seconds since 1970', () => {
    const text =
      '\uFEFFcompute,"connections",time,max_connections\r\nep-a,2.1,2026-03-02 00:01,112\n"ep-a",0,1772409600,\n';
    expect([...read(text)]).toEqual([
      [
        'ep-a',
        [
          { atMs: START, connections: 0 },
          { atMs: START + MINUTE_MS, connections: 3, maxConnections: 112 },
        ],
      ],
    ]);
  });

  it.each<[string, string]>([
    ['', 'c.csv: it is empty; the first line is time,compute,connections'],
    ['time,compute,connections\n', 'c.csv: it has a header and no counts'],
    [
      '2026-03-02T00:00Z,ep-a,1\n2026-03-02T00:01Z,ep-a,1\n',
      'c.csv:1: unknown column "2026-03-02T00:00Z"; the first line is',
    ],
    ['time,compute,conections\n1772409600,a,1', 'c.csv:1: unknown column "conections"; did you mean "connections"?'],
    ['time,compute\n1772409600,a', 'c.csv:1: no column connections; the first line is'],
    ['time,compute,connections,time\n1,a,1,1', 'c.csv:1: two columns time; leave one of them out'],
    ['time,compute,connections\n\nyesterday,a,1', 'c.csv:3: "yesterday" is not an instant; write 2026-03-02T08:00:00Z'],
    ['time,compute,connections\n1772409600,a,NaN', 'c.csv:2: "NaN" is not a number of connections; leave the line out'],
    ['time,compute,connections\n1772409600,a,-1', 'c.csv:2: "-1" is not a number of connections'],
    ['time,compute,connections\n1772409600,,1', 'c.csv:2: no compute; write its id'],
    ['time,compute,connections\n1772409600,a', 'c.csv:2: 2 fields, the header has 3'],
    [
      'time,compute,connections\n1772409600,a,1\n1772409600,a,2',
      'c.csv:3: a second count of "a" for that instant, the first is in line 2; add them up',
    ],
    [
      'time,compute,connections,max_connections\n1772409600,a,1,0',
      'c.csv:2: max_connections "0" is not a number above 0',
    ],
    [
      'time,compute,connections\n1772409600,a,1\n2027-03-03T00:00Z,a,1\n2027-03-03T00:01Z,b,1',
      'c.csv:4: 2027-03-03T00:01:00Z is more than 366 days from 2026-03-02T00:00:00Z in line 2; correct it',
    ],
    ['time,compute,connections\n1772409600,a,1\n2003-01-01T00:00Z,a,1', 'c.csv:3: 2003-01-01T00:00:00Z is more than'],
    ['time,compute,connections\n1772409600,"a,1', 'c.csv:2: no CSV: '],
    [`time,compute,connections\n1772409600,${'a'.repeat(20_000)},1`, 'no CSV: '],
  ])('is refused with its line: %j', (text, expected) => {
    expect(() => read(text)).toThrow(expected);
  });
});

describe('what is tried', () => {
  const shares = (variants: ReturnType<typeof variantsOf>) =>
    variants.map(({ targetShare, windowMs }) => `${targetShare} ${windowMs / MINUTE_MS}`);

  it('is one number at a time, or every target with every window, never the policy as written again', () => {
    expect(shares(variantsOf(aHeadroom(), {}))).toEqual(['0.6 30', '0.7 30', '0.8 15', '0.8 60']);
    const windows = [15 * MINUTE_MS, 30 * MINUTE_MS];
    expect(shares(variantsOf(aHeadroom(), { targets: [0.8, 0.5], windows }))).toEqual(['0.5 15', '0.5 30', '0.8 15']);
    expect(shares(variantsOf(aHeadroom(), { windows }))).toEqual(['0.8 15']);
  });
});
