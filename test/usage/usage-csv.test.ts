import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseUsageCsv, readUsageCsv, usageCsvLines } from '../../src/cli/usage/usage-csv.ts';
import type { UsageSeries } from '../../src/domain/usage/usage.ts';

const HEADER = 'unit,project_id,branch_id,start,seconds,cu_seconds';
const one = () => 1;

function parse(...lines: string[]): UsageSeries[] {
  return parseUsageCsv([HEADER, ...lines].join('\n'), 'usage.csv', one);
}

describe('usage.csv', () => {
  it('has an empty field where usage is unknown', () => {
    const [series] = parse('p/b,p,b,2026-03-02T08:00:00Z,3600,', 'p/b,p,b,2026-03-02T10:00:00+01:00,3600,900.5');
    expect(series).toEqual({
      projectId: 'p',
      branchId: 'b',
      buckets: [
        { startMs: Date.UTC(2026, 2, 2, 8), seconds: 3600, cuSeconds: null },
        { startMs: Date.UTC(2026, 2, 2, 9), seconds: 3600, cuSeconds: 900.5 },
      ],
    });
  });

  it('reads back what was written', () => {
    const bucket = fc.option(fc.integer({ min: 0, max: 56 * 3600 * 1000 }), { nil: null });
    const unit = fc.tuple(fc.constantFrom('p-1', 'p-2'), fc.constantFrom(null, 'br-1', 'br-2', 'deleted'));
    const fleet = fc.uniqueArray(fc.tuple(unit, fc.array(bucket, { minLength: 1 })), { selector: ([id]) => id.join() });
    fc.assert(
      fc.property(fleet, (drawn) => {
        const series = drawn.map(([[projectId, branchId], values]) => ({
          projectId,
          branchId,
          buckets: values.map((value, hour) => ({
            startMs: Date.UTC(2026, 0, 1, hour),
            seconds: 3600,
            cuSeconds: value === null ? null : value / 1000,
          })),
        }));
        expect(parseUsageCsv([...usageCsvLines(series)].join(''), 'usage.csv', one)).toEqual(series);
      }),
      { numRuns: 50 },
    );
  });

  it('says which file cannot be read', async () => {
    await expect(readUsageCsv('no-such.csv', one)).rejects.toThrow('--usage: no-such.csv cannot be read (ENOENT)');
  });

  const at8 = 'p/b,p,b,2026-03-02T08:00:00Z,3600,1';
  it.each([
    [
      'a time without a zone',
      ['p/b,p,b,2026-03-02T08:00:00,3600,1'],
      'usage.csv:2: start "2026-03-02T08:00:00" is not an instant',
    ],
    ['a day that does not exist', ['p/b,p,b,2026-02-30T08:00:00Z,3600,1'], 'usage.csv:2: start'],
    ['negative usage', ['p/b,p,b,2026-03-02T08:00:00Z,3600,-1'], 'usage.csv:2: cu_seconds "-1"'],
    ['unsorted buckets', ['p/b,p,b,2026-03-02T09:00:00Z,3600,1', at8], 'usage.csv:3: it begins before'],
    ['a doubled bucket', [at8, at8], 'usage.csv:3: a second bucket'],
    ['overlapping buckets', [at8, 'p/b,p,b,2026-03-02T08:30:00Z,3600,1'], 'usage.csv:3: it overlaps'],
    ['more than its computes can use', ['p/b,p,b,2026-03-02T08:00:00Z,3600,201601'], 'usage.csv:2: 201601 CU-seconds'],
    ['a unit that is not the project and branch', ['x,p,b,2026-03-02T08:00:00Z,3600,1'], 'usage.csv:2: unit "x"'],
    ['a row that is too short', ['p/b,p,b'], 'usage.csv:2: 3 fields'],
    ['no length', ['p/b,p,b,2026-03-02T08:00:00Z,0,1'], 'usage.csv:2: seconds "0"'],
  ])('refuses %s, and says where', (_, lines, message) => {
    expect(() => parse(...lines)).toThrow(message);
  });
});
