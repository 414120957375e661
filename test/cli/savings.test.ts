import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS_HEADER, operationLine } from '../../src/domain/awake/operations-csv.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { armInPeriod, drawOf } from '../../src/domain/trial/assignment.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';
import { fleetFile } from './fleet-files.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const UNITS = Array.from({ length: 30 }, (_, index) => `web-${index}`);
/** Berlin is an hour ahead of UTC until 2026-03-29. */
const FROM_DAY = Date.parse('2026-01-12T00:00:00Z') / DAY;
const FROM = FROM_DAY * DAY - HOUR;
const POLICIES = `version: 1
timezone: Europe/Berlin
owner: team-web
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"] }
    windows: [{ at: Mon-Fri 08:00-18:00, size: 1-4 }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
  - name: proof
    kind: trial
    select: { projects: ["web-*"] }
    of: [office-hours]
    control: 25%
    from: 2026-01-12
    until: 2026-03-09
    seed: a
`;

/** What each unit used by hours, and saved a quarter of while it was treated; from 14 days before the trial on. */
function usage(): string {
  const random = seededRandom(3);
  const lines = UNITS.flatMap((unit) => {
    const { slot } = drawOf({ seed: 'a', oneOf: 4 }, unit);
    const size = 500 + 3000 * random();
    return Array.from({ length: 70 * 24 }, (_, hour) => {
      const ms = FROM + (hour - 14 * 24) * HOUR;
      const period = Math.floor((ms - FROM) / (7 * DAY));
      const treated = period >= 0 && armInPeriod({ oneOf: 4 }, slot, period) === 'treated';
      const used = size * (0.5 + random()) * (treated ? 0.75 : 1);
      return `${unit},${unit},,${new Date(ms).toISOString()},3600,${unit === 'web-3' && hour === 500 ? '' : used.toFixed(1)}`;
    });
  });
  return ['unit,project_id,branch_id,start,seconds,cu_seconds', ...lines, ''].join('\n');
}

/** One start and one suspend a day, two while treated. */
function operations(): string {
  const lines = UNITS.flatMap((unit) => {
    const { slot } = drawOf({ seed: 'a', oneOf: 4 }, unit);
    const row = { projectId: unit, computeId: `ep-${unit}`, status: 'finished', totalDurationMs: 500 };
    return Array.from({ length: 58 }, (_, day) => {
      const treated = armInPeriod({ oneOf: 4 }, slot, Math.floor((day - 1) / 7)) === 'treated';
      return [9, ...(treated ? [15] : [])].flatMap((hour) => {
        const atMs = FROM + (day - 1) * DAY + hour * HOUR;
        const start = operationLine({ ...row, action: 'start_compute', createdAtMs: atMs });
        return [start, operationLine({ ...row, action: 'suspend_compute', createdAtMs: atMs + HOUR })];
      });
    }).flat();
  });
  return [OPERATIONS_HEADER, ...lines, ''].join('\n');
}

let folder: Awaited<ReturnType<typeof makeFolder>>;

beforeAll(async () => {
  folder = await makeFolder({
    'usage.csv': usage(),
    'operations.csv': operations(),
    'fleet.json': fleetFile(Object.fromEntries(UNITS.map((unit) => [`${unit}/ep-${unit}`, { state: 'idle' }]))),
    'policies.yaml': POLICIES,
    'other.yaml': POLICIES.replace('kind: trial', 'kind: trial\n    enabled: false'),
    'ebb.yaml': 'plan: scale\npolicies: policies.yaml\n',
  });
});

afterAll(() => folder.remove());

async function ebb(...args: string[]) {
  const child = startEbb(['savings', '--fleet', 'fleet.json', ...args], { cwd: folder.path, env: {} });
  const status = await child.ended;
  return { status, stdout: child.lines.join('\n'), stderr: child.stderr() };
}
const USAGE = ['--usage', 'usage.csv'];

describe('ebb savings', () => {
  it('measures a trial from files alone, without a key', async () => {
    const { status, stdout, stderr } = await ebb('--json', '--by', 'owner', '--operations', 'operations.csv', ...USAGE);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({
      ...{ trial: 'proof', unit: 'project', state: 'complete', distinguishable: true, units: 30 },
      ...{ from: '2026-01-12', to: '2026-03-09', unknown_hours: 1, left_out: [] },
      // Of 30 × 48 unit-days one has an hour that is not known.
      unit_days: { treated: expect.any(Number), control: expect.any(Number) },
      owners: [{ owner: 'team-web', units: 30 }],
    });
    expect(report.unit_days.treated + report.unit_days.control).toBe(30 * 48 - 1);
    expect(report.relative.low).toBeLessThan(0.25);
    expect(report.relative.high).toBeGreaterThan(0.25);
    expect(report.usd.mid).toBeCloseTo(report.cu_hours.mid * 0.222, 1);
    expect(report.starts_per_unit_day).toMatchObject({ control: 1, treated: 2, difference: { mid: 1 } });
  });

  it('tells people what it rests on', async () => {
    const { stdout } = await ebb(...USAGE);
    expect(stdout).toMatch(/^Trial proof, 2026-01-12 to 2026-03-09: the policies have an effect\.$/m);
    expect(stdout).toMatch(/^ {2}saved +2\d\.\d % \(.* to .* %\), [\d,.]+ CU-hours \(.*\), \$[\d,.]+ \(/m);
    expect(stdout).toMatch(/30 projects \(as good as 2\d(\.\d)? of one size\)/);
    expect(stdout).toContain('; hours not known: 1');
  });

  it('claims nothing of a part', async () => {
    const { stdout } = await ebb('--to', '2026-02-09', ...USAGE);
    expect(stdout).toContain('interim, so nothing is claimed yet.');
  });

  it('shows what a trial will do and could find out', async () => {
    const report = JSON.parse((await ebb('--design', '--json', ...USAGE)).stdout);
    expect(report).toMatchObject({ trial: 'proof', from: '2026-01-12', until: '2026-03-09', units: 30 });
    expect(report.periods).toHaveLength(8);
    expect(report.slots.reduce((sum: number, count: number) => sum + count)).toBe(30);
    expect(report.periods[0]).toMatchObject({ from: '2026-01-12', control: report.slots[0], restarts: 0 });
    expect(report.expected).toMatchObject({ days: 14 });
    const { stdout } = await ebb('--design');
    expect(stdout).toContain('The smallest detectable saving is not known');
  });

  it.each([
    [['--trial', 'prof', ...USAGE], 'ebb: --trial: no trial is named prof; there are proof'],
    [[], 'ebb: --fleet needs --usage: a snapshot has no usage; give the usage.csv of `ebb usage export`'],
    [['--policies', 'other.yaml', ...USAGE], 'ebb: no policy is of kind trial; docs/savings.md says how to write one'],
    [['--from', '2026-2-1', ...USAGE], 'ebb: --from: 2026-2-1 is not a date; write for example 2027-01-11'],
  ])('says what is wrong: %o', async (args, message) => {
    expect(await ebb(...args)).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining(message) });
  });
});
