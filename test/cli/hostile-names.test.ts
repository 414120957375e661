import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';

/** What steers a terminal, turns the direction of text, begins a line of its own, or gives an order to the runner of a workflow. */
const HOSTILE = '\u001b[2J\u001b]0;x\u0007\r\n::error::planted\n\u202e\u2066\u009b1A##[error]planted\u2028';
const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

const compute = (id: string) => ({
  ...{ id, branch_id: 'br-1', branch: { name: HOSTILE }, type: 'read_write', state: 'active' },
  ...{ min_cu: 0.25, max_cu: 1, suspend_timeout_seconds: 0, connections: 3 },
});
const FORMULA = '=HYPERLINK("http://planted")';
/** What a spreadsheet runs: a cell that begins with one of these and is no number. */
const FORMULA_CELL = /(^|,)"?[=+\-@\t\r](?![\d.]+(,|$))/;
const USAGE = [
  'unit,project_id,branch_id,start,seconds,cu_seconds',
  ...['pr-1', 'pr-2'].map((id) => `${id},${id},,2026-03-02T00:00:00Z,86400,3600`),
  '',
].join('\n');
const OPERATIONS = [
  'project_id,compute_id,action,status,created_at,duration_ms',
  'pr-1,ep-one,start_compute,finished,2026-03-02T08:00:00Z,500',
  'pr-2,ep-two,start_compute,finished,2026-03-02T08:00:00Z,500',
  '',
].join('\n');
const FLEET = JSON.stringify({
  projects: [
    { id: 'pr-1', name: HOSTILE, region_id: 'aws-eu-central-1', pg_version: 17, computes: [compute('ep-one')] },
    { id: 'pr-2', name: FORMULA, region_id: 'aws-eu-central-1', pg_version: 17, computes: [compute('ep-two')] },
  ],
});
const policy = (size: string, hostile: string) =>
  JSON.stringify({
    version: 1,
    policies: [
      {
        ...{ name: 'plain', kind: 'schedule', owner: hostile, select: { projects: ['*'] } },
        ...{ windows: [{ at: 'always', size }], otherwise: 'leave' },
      },
    ],
  });
/** Broken: every text of it is hostile, so that messages name what they complain about. */
const BROKEN = JSON.stringify({
  version: 1,
  calendars: { [HOSTILE]: { dates: [HOSTILE] } },
  [HOSTILE]: HOSTILE,
  policies: [
    {
      ...{ name: HOSTILE, kind: 'schedule', owner: HOSTILE, select: { projects: [HOSTILE] }, zone: HOSTILE },
      ...{ windows: [{ at: HOSTILE, size: HOSTILE, calendar: HOSTILE }], otherwise: HOSTILE },
    },
  ],
});
/** Right in its form, and wrong in what it names. */
const DANGLING = JSON.stringify({
  version: 1,
  policies: [
    { name: 'room', kind: 'headroom', select: { projects: ['*'] }, connections: HOSTILE, target: '70%', max_size: 8 },
  ],
});

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  folder = await makeFolder({
    'fleet.json': FLEET,
    'usage.csv': USAGE,
    'operations.csv': OPERATIONS,
    'old.json': policy('1', 'ann'),
    'new.json': policy('2', 'ann'),
    'owned.json': policy('2', HOSTILE),
    'broken.json': BROKEN,
    'dangling.json': DANGLING,
    'hostile\n::error::planted\u202e.json': BROKEN,
    'ebb.yaml': 'policies: new.json\n',
    'hostile.yaml': JSON.stringify({ mode: HOSTILE, [HOSTILE]: HOSTILE, policies: 'new.json' }),
  });
});
afterAll(() => folder.remove());

async function run(...args: string[]) {
  const child = startEbb(args, { cwd: folder.path });
  let out = '';
  child.child.stdout?.on('data', (chunk) => {
    out += chunk;
  });
  await child.ended;
  return { out, err: child.stderr() };
}

const FLEET_FLAGS = ['--fleet', 'fleet.json'];
const PAST_FLAGS = [...FLEET_FLAGS, '--usage', 'usage.csv'];
const COST_FLAGS = [...PAST_FLAGS, '--month', '2026-03', '--by', 'project'];
const RECOMMEND_FLAGS = [...FLEET_FLAGS, '--operations', 'operations.csv'];
const COMMANDS: string[][] = [
  ['plan', ...FLEET_FLAGS],
  ['plan', ...FLEET_FLAGS, '--json'],
  ['explain', 'ep-one', ...FLEET_FLAGS],
  ['explain', 'ep-one', ...FLEET_FLAGS, '--json'],
  ['explain', HOSTILE, ...FLEET_FLAGS],
  ['cost', ...COST_FLAGS],
  ['cost', ...COST_FLAGS, '--json'],
  ['cost', ...COST_FLAGS, '--csv'],
  ['awake', ...RECOMMEND_FLAGS],
  ['recommend', ...RECOMMEND_FLAGS],
  ['recommend', ...RECOMMEND_FLAGS, '--format', 'markdown'],
  ['recommend', ...RECOMMEND_FLAGS, '--json'],
  ['forecast', ...FLEET_FLAGS],
  ['forecast', ...FLEET_FLAGS, '--json'],
  ['diff', 'old.json', 'new.json', ...FLEET_FLAGS],
  ['diff', 'old.json', 'new.json', ...FLEET_FLAGS, '--format', 'markdown'],
  ['terraform', 'ignored', ...FLEET_FLAGS],
  ['snapshot', ...FLEET_FLAGS],
  ['validate', '--matches', ...FLEET_FLAGS],
  ['validate', '--matches', ...FLEET_FLAGS, '--format', 'github'],
  ['validate', 'owned.json'],
  ['validate', 'dangling.json'],
  ['validate', 'dangling.json', '--format', 'github'],
  ['validate', 'broken.json'],
  ['validate', 'broken.json', '--json'],
  ['validate', 'broken.json', '--format', 'github'],
  ['validate', 'hostile*.json'],
  ['validate', 'hostile*.json', '--format', 'github'],
  ['plan', ...FLEET_FLAGS, '--config', 'hostile.yaml'],
  ['plan', '--fleet', HOSTILE],
  ['history', HOSTILE],
  [HOSTILE],
];

describe('names, texts and files of others', () => {
  it.each(COMMANDS.map((args) => [args.map((arg) => (arg === HOSTILE ? 'HOSTILE' : arg)).join(' '), args] as const))(
    'steer neither the terminal nor a workflow: ebb %s',
    async (_, args) => {
      const { out, err } = await run(...args);
      const lines = `${out}\n${err}`.split('\n');
      expect(lines.filter((line) => STEERING.test(line))).toEqual([]);
      expect(lines.filter((line) => /^\s*::error::planted|##\[error\]/.test(line))).toEqual([]);
      // A line of its own is what `\n` in a name would make.
      expect(lines.filter((line) => /^\W*error\W*planted/.test(line))).toEqual([]);
      if (args.includes('--csv')) expect(lines.filter((line) => FORMULA_CELL.test(line))).toEqual([]);
    },
  );
});
