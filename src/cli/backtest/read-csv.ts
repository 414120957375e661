import { DateTime } from 'luxon';
import type { RecordedCount } from '../../domain/backtest/replay.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import { eachCsvRow, readCsvText, shownField, wrongLine } from '../csv.ts';
import { UserError } from '../fail.ts';

/** Limits of a file. A larger one would fill the memory and take too long to replay. */
const MAX_MIB = 32;
export const MAX_COUNTS = 200_000;

/** The longest span of a file, since one wrong year would make a replay of decades. */
const MAX_DAYS = 366;

const NEEDED = ['time', 'compute', 'connections'] as const;
const COLUMNS = {
  known: [...NEEDED, 'max_connections'] as const,
  needed: NEEDED,
  most: MAX_COUNTS,
  tooMany: `it has more than ${MAX_COUNTS} counts; take less time, fewer computes or longer steps`,
};
type Field = (column: (typeof COLUMNS.known)[number]) => string;

/** Reads the counts of each compute, oldest first. Throws a UserError that says where the file is wrong. */
export async function readCsv(file: string): Promise<Map<string, RecordedCount[]>> {
  const ifLarger = 'take less time, fewer computes or longer steps';
  return parseCsv(await readCsvText('--connections', file, MAX_MIB, ifLarger), file);
}

/** Parses recorded counts. Errors call the text `file`. */
export function parseCsv(text: string, file: string): Map<string, RecordedCount[]> {
  const counts = new Map<string, RecordedCount[]>();
  const lineOfCount = new Map<string, number>();
  const checkSpan = spanGuard(file);
  const rows = eachCsvRow(text, file, COLUMNS, (field, line) => {
    const { computeId, ...count } = countOf(field, line, file);
    const before = lineOfCount.get(`${computeId} ${count.atMs}`);
    if (before !== undefined) {
      const what = `a second count of ${shownField(computeId)} for that instant, the first is in line ${before}`;
      throw wrongLine(file, line, `${what}; add them up`);
    }
    lineOfCount.set(`${computeId} ${count.atMs}`, line);
    checkSpan(count.atMs, line);
    const ofCompute = counts.get(computeId);
    if (ofCompute) ofCompute.push(count);
    else counts.set(computeId, [count]);
  });
  if (rows === 0) throw new UserError(`${file}: it has a header and no counts; write one line for each count`);
  for (const ofCompute of counts.values()) ofCompute.sort((a, b) => a.atMs - b.atMs);
  return counts;
}

/** Returns a check for each count. It throws if the counts so far span more than {@link MAX_DAYS}. */
function spanGuard(file: string): (atMs: number, line: number) => void {
  let first: { atMs: number; line: number } | undefined;
  let last: { atMs: number; line: number } | undefined;
  return (atMs, line) => {
    if (first === undefined || atMs < first.atMs) first = { atMs, line };
    if (last === undefined || atMs > last.atMs) last = { atMs, line };
    if (last.atMs - first.atMs <= MAX_DAYS * DAY_MS) return;
    const other = first.line === line ? last : first;
    const what = `${isoInstant(atMs)} is more than ${MAX_DAYS} days from ${isoInstant(other.atMs)} in line ${other.line}`;
    throw wrongLine(file, line, `${what}; correct it, or take less time`);
  };
}

function countOf(field: Field, line: number, file: string) {
  const computeId = field('compute');
  if (computeId === '') throw wrongLine(file, line, 'no compute; write its id');
  const atMs = instantIn(field('time'));
  if (atMs === undefined) {
    const what = `${shownField(field('time'))} is not an instant`;
    throw wrongLine(file, line, `${what}; write 2026-03-02T08:00:00Z (without offset: UTC) or seconds since 1970`);
  }
  const connections = numberIn(field('connections'));
  if (connections === undefined) {
    const what = `${shownField(field('connections'))} is not a number of connections`;
    throw wrongLine(file, line, `${what}; leave the line out where nothing was counted`);
  }
  const max = field('max_connections');
  const maxConnections = max === '' ? undefined : numberIn(max);
  if (max !== '' && !maxConnections)
    throw wrongLine(file, line, `max_connections ${shownField(max)} is not a number above 0; leave it empty`);
  return { computeId, atMs, connections, ...(maxConnections !== undefined && { maxConnections }) };
}

/** Parses an ISO instant, or seconds since 1970, as Prometheus writes them. Returns milliseconds since the epoch. */
function instantIn(text: string): number | undefined {
  if (/^\d{9,10}(\.\d{1,9})?$/.test(text)) return Math.round(Number(text) * 1000);
  const instant = DateTime.fromISO(text.replace(' ', 'T'), { zone: 'utc' });
  return /^\d{4}-\d\d-\d\d[T ]\d\d:/.test(text) && instant.isValid ? instant.toMillis() : undefined;
}

/** Averages may have fractions. They are rounded up, so that no need for connections is underestimated. */
function numberIn(text: string): number | undefined {
  if (!/^\d{1,9}(\.\d{1,20})?$/.test(text)) return undefined;
  return Math.ceil(Number(text));
}
