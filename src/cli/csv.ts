/** Reads CSV files. Errors name file and line. */

import { readFile, stat } from 'node:fs/promises';
import { CsvError, parse } from 'csv-parse/sync';
import { DateTime } from 'luxon';
import { errorCode } from '../common/errors.ts';
import { didYouMean } from '../common/names.ts';
import { printable } from '../common/safe-text.ts';
import { UserError } from './fail.ts';
import { shortened } from './output.ts';

const MAX_LINE_BYTES = 10_000;

interface CsvRow {
  fields: readonly string[];
  line: number;
}

interface CsvColumns<Column extends string> {
  known: readonly Column[];
  needed: readonly Column[];
}

/**
 * Calls `each` for the rows below the header, in order, and returns their number. Throws a UserError for more than `most` rows, invalid CSV, an
 * empty file, unknown or missing columns, and a row with more or fewer fields than the header.
 */
export function eachCsvRow<Column extends string>(
  text: string,
  file: string,
  columns: CsvColumns<Column> & { most: number; tooMany: string },
  each: (field: (column: Column) => string, line: number) => void,
): number {
  let places: ReadonlyMap<Column, number> | undefined;
  let rows = 0;
  // The header, and one row more than allowed.
  forEachRecord(text, file, columns.most + 2, (row) => {
    if (places === undefined) {
      places = placesOf(row, columns, file);
      return;
    }
    rows += 1;
    if (rows > columns.most) throw new UserError(`${file}: ${columns.tooMany}`);
    if (row.fields.length !== places.size) {
      const what = `${row.fields.length} fields, the header has ${places.size}`;
      throw wrongLine(file, row.line, `${what}; write one for each column`);
    }
    const placeOf = places;
    each((column) => row.fields[placeOf.get(column) ?? -1] ?? '', row.line);
  });
  if (places === undefined) throw new UserError(`${file}: it is empty; ${header(columns)}`);
  return rows;
}

function forEachRecord(text: string, file: string, mostRecords: number, each: (row: CsvRow) => void): void {
  try {
    parse(text, {
      bom: true,
      trim: true,
      skip_empty_lines: true,
      relax_column_count: true,
      record_delimiter: ['\r\n', '\n', '\r'],
      max_record_size: MAX_LINE_BYTES,
      to: mostRecords,
      on_record(fields, { lines }) {
        each({ fields, line: lines });
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = 'lines' in error && typeof error.lines === 'number' ? `:${error.lines}` : '';
    throw new UserError(`${file}${line}: no CSV: ${printable(error.message)}; separate by commas, quote with "`);
  }
}

function placesOf<Column extends string>(
  { fields, line }: CsvRow,
  columns: CsvColumns<Column>,
  file: string,
): Map<Column, number> {
  const places = new Map<Column, number>();
  for (const [index, field] of fields.entries()) {
    const column = columns.known.find((known) => known === field.toLowerCase());
    if (column === undefined) {
      const what = `unknown column ${shownField(field)}${didYouMean(field, columns.known)}`;
      throw wrongLine(file, line, `${what}; ${header(columns)}`);
    }
    if (places.has(column)) throw wrongLine(file, line, `two columns ${column}; leave one of them out`);
    places.set(column, index);
  }
  const missing = columns.needed.find((column) => !places.has(column));
  if (missing !== undefined) throw wrongLine(file, line, `no column ${missing}; ${header(columns)}`);
  return places;
}

function header({ known, needed }: CsvColumns<string>): string {
  const forms = known.length === needed.length ? [known] : [needed, known];
  return `the first line is ${forms.map((columns) => columns.join(',')).join(' or ')}`;
}

/** An ISO 8601 instant with a zone, as milliseconds since the epoch; undefined for any other text. */
export function zonedInstant(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/.test(text)) return undefined;
  const instant = DateTime.fromISO(text, { zone: 'utc' });
  return instant.isValid ? instant.toMillis() : undefined;
}

export function wrongLine(file: string, line: number, message: string): UserError {
  return new UserError(`${file}:${line}: ${message}`);
}

/** A field of a file, shortened and escaped for an error. */
export function shownField(text: string): string {
  return `"${shortened(printable(text), 40)}"`;
}

/** Reads the file that a flag names. Throws a UserError if the file is larger than `mostMib` MiB or can't be read. */
export async function readCsvText(flag: string, file: string, mostMib: number, ifLarger: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > mostMib * 1024 * 1024) {
      throw new UserError(`${flag}: ${file} is larger than ${mostMib} MiB; ${ifLarger}`);
    }
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${flag}: ${file} cannot be read (${errorCode(error)}); check the path and its permissions`);
  }
}
