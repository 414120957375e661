import { describe, expect, it } from 'vitest';
import { csvLine } from '../../src/common/csv-text.ts';
import { operationLine } from '../../src/domain/awake/operations-csv.ts';

describe('a line of CSV', () => {
  it.each(['=HYPERLINK("http://x")', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1'])('has no formula: %j', (text) => {
    expect(csvLine([text])).toMatch(/^"?'/);
  });

  it('keeps numbers as numbers, and leaves out what is not known', () => {
    expect(csvLine(['a', -1.5, 0, null, undefined, 'b'])).toBe('a,-1.5,0,,,b');
  });

  it('quotes separators, and is one line whatever a text holds', () => {
    expect(csvLine(['a,b', 'say "hi"', 'one\ntwo\u2028\u202e'])).toBe('"a,b","say ""hi""",one?two??');
  });
});

describe('a line of operations.csv', () => {
  it('has neither a formula nor a separator of its own, in a format without quotes', () => {
    const row = { projectId: '=cmd', computeId: ',@ep\u202e', action: '-a\t', status: '+ok', createdAtMs: 0 };
    expect(operationLine(row)).toBe('cmd,ep,a,ok,1970-01-01T00:00:00Z,');
  });
});
