import { readFile, stat } from 'node:fs/promises';
import { CsvError, type Info, parse } from 'csv-parse/sync';
import { DateTime } from 'luxon';
import { printable } from '../../common/safe-text.ts';
import type { RecordedCount } from '../../domain/backtest/recording.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import { didYouMean } from '../../policy/suggest.ts';
import { UserError } from '../fail.ts';
import { shortened } from '../printable.ts';

/** A file of counts: larger ones are more than a replay gets through, and would fill the memory. */
const MOST_BYTES = 32 * 1024 * 1024;
export const MOST_COUNTS = 200_000;
const MOST_LINE_BYTES = 10_000;

/** One wrong year would make a replay of decades. */
const MOST_DAYS = 366;

const NEEDED = ['time', 'compute', 'connections'] as const;
const COLUMNS = [...NEEDED, 'max_connections'] as const;
type Column = (typeof COLUMNS)[number];
const HEADER = 'the first line is time,compute,connections or time,compute,connections,max_connections';

/** What a file says of each compute, oldest first. Throws a UserError that says where it is wrong. */
export async function readCsv(file: string): Promise<Map<string, RecordedCount[]>> {
  return parseCsv(await readText(file), file);
}

/** The same of a text; `file` is what it is called in errors. */
export function parseCsv(text: string, file: string): Map<string, RecordedCount[]> {
  const [head, ...rows] = recordsOf(text, file);
  if (head === undefined) throw new UserError(`${file}: it is empty; ${HEADER}`);
  if (rows.length === 0) throw new UserError(`${file}: it has a header and no counts; write one line for each count`);
  if (rows.length > MOST_COUNTS) {
    throw new UserError(
      `${file}: it has more than ${MOST_COUNTS} counts; take less time, fewer computes or longer steps`,
    );
  }
  const columns = columnsOf(head, file);
  const counts = new Map<string, RecordedCount[]>();
  const lines = new Map<string, number>();
  const within = spanGuard(file);
  for (const row of rows) {
    const { computeId, ...count } = countOf(row, columns, file);
    const before = lines.get(`${computeId} ${count.atMs}`);
    if (before !== undefined) {
      const what = `a second count of ${shown(computeId)} for that instant, the first is in line ${before}`;
      throw wrong(file, row.line, `${what}; add them up`);
    }
    lines.set(`${computeId} ${count.atMs}`, row.line);
    within(count.atMs, row.line);
    const ofCompute = counts.get(computeId);
    if (ofCompute) ofCompute.push(count);
    else counts.set(computeId, [count]);
  }
  for (const ofCompute of counts.values()) ofCompute.sort((a, b) => a.atMs - b.atMs);
  return counts;
}

/** Throws at the first count that is too far from another. */
function spanGuard(file: string): (atMs: number, line: number) => void {
  let first: { atMs: number; line: number } | undefined;
  let last: { atMs: number; line: number } | undefined;
  return (atMs, line) => {
    if (first === undefined || atMs < first.atMs) first = { atMs, line };
    if (last === undefined || atMs > last.atMs) last = { atMs, line };
    if (last.atMs - first.atMs <= MOST_DAYS * 24 * 3_600_000) return;
    const other = first.line === line ? last : first;
    const what = `${isoInstant(atMs)} is more than ${MOST_DAYS} days from ${isoInstant(other.atMs)} in line ${other.line}`;
    throw wrong(file, line, `${what}; correct it, or take less time`);
  };
}

interface Row {
  fields: readonly string[];
  line: number;
}

function recordsOf(text: string, file: string): Row[] {
  try {
    const records: unknown = parse(text, {
      ...{ bom: true, info: true, trim: true, skip_empty_lines: true, relax_column_count: true },
      ...{ record_delimiter: ['\r\n', '\n', '\r'], max_record_size: MOST_LINE_BYTES, to: MOST_COUNTS + 2 },
    });
    return (records as { record: string[]; info: Info }[]).map(({ record, info }) => ({
      fields: record,
      line: info.lines,
    }));
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = 'lines' in error && typeof error.lines === 'number' ? `:${error.lines}` : '';
    throw new UserError(`${file}${line}: no CSV: ${printable(error.message)}; separate by commas, quote with "`);
  }
}

/** Where in a row each column stands. */
function columnsOf({ fields, line }: Row, file: string): Map<Column, number> {
  const columns = new Map<Column, number>();
  for (const [index, field] of fields.entries()) {
    const column = COLUMNS.find((known) => known === field.toLowerCase());
    if (column === undefined) {
      throw wrong(file, line, `unknown column ${shown(field)}${didYouMean(field, COLUMNS)}; ${HEADER}`);
    }
    if (columns.has(column)) throw wrong(file, line, `two columns ${column}; leave one of them out`);
    columns.set(column, index);
  }
  const missing = NEEDED.find((column) => !columns.has(column));
  if (missing !== undefined) throw wrong(file, line, `no column ${missing}; ${HEADER}`);
  return columns;
}

function countOf({ fields, line }: Row, columns: ReadonlyMap<Column, number>, file: string) {
  if (fields.length !== columns.size) {
    throw wrong(file, line, `${fields.length} fields, the header has ${columns.size}; write one for each column`);
  }
  const field = (column: Column) => fields[columns.get(column) ?? -1] ?? '';
  const computeId = field('compute');
  if (computeId === '') throw wrong(file, line, 'no compute; write its id');
  const atMs = instantIn(field('time'));
  if (atMs === undefined) {
    const what = `${shown(field('time'))} is no instant`;
    throw wrong(file, line, `${what}; write 2026-03-02T08:00:00Z (without offset: UTC) or seconds since 1970`);
  }
  const connections = numberIn(field('connections'));
  if (connections === undefined) {
    const what = `${shown(field('connections'))} is no number of connections`;
    throw wrong(file, line, `${what}; leave the line out where nothing was counted`);
  }
  const max = field('max_connections');
  const maxConnections = max === '' ? undefined : numberIn(max);
  if (max !== '' && !maxConnections)
    throw wrong(file, line, `max_connections ${shown(max)} is no number above 0; leave it empty`);
  return { computeId, atMs, connections, ...(maxConnections !== undefined && { maxConnections }) };
}

/** ISO, or seconds since 1970 as Prometheus writes them. */
function instantIn(text: string): number | undefined {
  if (/^\d{9,10}(\.\d{1,9})?$/.test(text)) return Math.round(Number(text) * 1000);
  const instant = DateTime.fromISO(text.replace(' ', 'T'), { zone: 'utc' });
  return /^\d{4}-\d\d-\d\d[T ]\d\d:/.test(text) && instant.isValid ? instant.toMillis() : undefined;
}

/** Averages are not whole; a need is never rounded down. */
function numberIn(text: string): number | undefined {
  if (!/^\d{1,9}(\.\d{1,20})?$/.test(text)) return undefined;
  return Math.ceil(Number(text));
}

function wrong(file: string, line: number, message: string): UserError {
  return new UserError(`${file}:${line}: ${message}`);
}

function shown(text: string): string {
  return `"${shortened(printable(text), 40)}"`;
}

async function readText(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > MOST_BYTES) {
      throw new UserError(
        `--connections: ${file} is larger than 32 MiB; take less time, fewer computes or longer steps`,
      );
    }
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof UserError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    throw new UserError(`--connections: ${file} can not be read (${code}); check the path and its permissions`);
  }
}
