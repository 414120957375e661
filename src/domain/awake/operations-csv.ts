import { isoInstant } from '../time/units.ts';
import { codeOf, type OperationLog, type OperationRow, type ProjectLog } from './operation-log.ts';

/** The columns of `operations.csv`. */
export const OPERATIONS_HEADER = 'project_id,compute_id,action,status,created_at,duration_ms';

/** The largest number of seconds since the epoch in 32 bits: in the year 2106. */
const MAX_SECONDS = 2 ** 32 - 1;
const MAX_DURATION_MS = 2 ** 32 - 1;

interface CsvProblem {
  /** Counted from 1. */
  line: number;
  message: string;
}

/** Characters that no id or action contains. Those that begin a spreadsheet formula are only removed at the start. */
const NOT_IN_FIELDS = /[",\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const FORMULA = /^[=+\-@]+/;

/** One line of `operations.csv`, without the line end. The format has no quotes, so characters that would need them are removed. */
export function operationLine({
  projectId,
  computeId = '',
  action,
  status,
  createdAtMs,
  totalDurationMs,
}: OperationRow): string {
  const texts = [projectId, computeId, action, status].map((text) =>
    text.replace(NOT_IN_FIELDS, '').replace(FORMULA, ''),
  );
  return [...texts, isoInstant(createdAtMs), totalDurationMs === undefined ? '' : Math.round(totalDurationMs)].join();
}

/**
 * Reads `operations.csv` piece by piece into a log. Pieces are latin1 text, split anywhere. Operations of a project must be sorted by
 * time, newest or oldest first. `push` and `end` return a problem with its line, or undefined; nothing may be pushed after a problem.
 */
export function createOperationsReader(log: OperationLog): {
  push(piece: string): CsvProblem | undefined;
  end(): CsvProblem | undefined;
} {
  /** Cached by the first four fields, which many operations share. */
  const kinds = new Map<string, { project: ProjectLog; computeId: string | undefined; code: number }>();
  let rest = '';
  let line = 0;

  function readLine(text: string, from: number, to: number): string | undefined {
    const first = commaAfter(text, from, to);
    const second = commaAfter(text, first + 1, to);
    const third = commaAfter(text, second + 1, to);
    const fourth = commaAfter(text, third + 1, to);
    const fifth = commaAfter(text, fourth + 1, to);
    if (!isLastComma(text, fifth, to)) return `not six fields; write ${OPERATIONS_HEADER}, without quotes`;
    if (first === from) return 'no project_id';
    const atMs = parseInstant(text, fourth + 1, fifth);
    if (atMs === undefined) return 'created_at is not an instant with a zone; write for example 2026-03-02T08:00:00Z';
    if (atMs < 0 || atMs / 1000 > MAX_SECONDS) return 'created_at is before 1970 or after 2106';
    const durationMs = parseDuration(text, fifth + 1, to);
    if (durationMs === undefined)
      return 'duration_ms is not a number of milliseconds; leave it empty if it is not known';
    const key = text.slice(from, fourth);
    const { project, computeId, code } = kinds.get(key) ?? newKind(copyOf(key));
    if (project.addCode(computeId, Math.floor(atMs / 1000), code, durationMs)) return undefined;
    return `${project.projectId} is not sorted; write its operations newest first`;
  }

  function newKind(key: string) {
    const [projectId = '', computeId, action = '', status = ''] = key.split(',');
    const kind = { project: log.project(projectId), computeId: computeId || undefined, code: codeOf(action, status) };
    kinds.set(key, kind);
    return kind;
  }

  function readLines(text: string, isLast: boolean, start = 0): CsvProblem | undefined {
    let from = start;
    for (let to = text.indexOf('\n', from); to >= 0 || (isLast && from < text.length); to = text.indexOf('\n', from)) {
      const end = to < 0 ? text.length : to;
      line += 1;
      const message = lineProblem(text, from, text.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end);
      if (message !== undefined) return { line, message };
      from = end + 1;
    }
    rest = text.slice(from);
    return undefined;
  }

  function lineProblem(text: string, from: number, to: number): string | undefined {
    if (line === 1) return headerProblem(text.slice(from, to));
    return to > from ? readLine(text, from, to) : undefined;
  }

  return {
    push(piece) {
      // Only the line across both pieces is concatenated: concatenated text is slower to read.
      const next = piece.indexOf('\n') + 1;
      if (next === 0) rest += piece;
      return next === 0 ? undefined : (readLines(rest + piece.slice(0, next), false) ?? readLines(piece, false, next));
    },
    end() {
      const problem = readLines(rest, true);
      if (problem) return problem;
      return line === 0 ? { line: 1, message: `it is empty; the first line is ${OPERATIONS_HEADER}` } : undefined;
    },
  };
}

const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = /^\u00ef\u00bb\u00bf/;

function headerProblem(text: string): string | undefined {
  const isHeader = text.replace(BYTE_ORDER_MARK, '').trim() === OPERATIONS_HEADER;
  return isHeader ? undefined : `the first line is ${OPERATIONS_HEADER}`;
}

/** A copy of a text: a substring would keep the whole piece in memory. */
function copyOf(text: string): string {
  return text.split('').join('');
}

/** Parses an ISO instant with an offset, in whole seconds; returns milliseconds since the epoch. Several times as fast as Date.parse. */
function parseInstant(text: string, from: number, to: number): number | undefined {
  const year = digits(text, from, 4);
  const month = digits(text, from + 5, 2);
  const day = digits(text, from + 8, 2);
  const hour = digits(text, from + 11, 2);
  const minute = digits(text, from + 14, 2);
  const second = digits(text, from + 17, 2);
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= 31)) return undefined;
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return undefined;
  if (text[from + 4] !== '-' || text[from + 7] !== '-' || (text[from + 10] !== 'T' && text[from + 10] !== ' '))
    return undefined;
  if (text[from + 13] !== ':' || text[from + 16] !== ':') return undefined;
  const offsetSeconds = parseOffset(text, from + 19, to);
  if (offsetSeconds === undefined) return undefined;
  return (daysSinceEpoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offsetSeconds) * 1000;
}

/** Parses the UTC offset, in seconds, after an ignored fraction; undefined if there is none. */
function parseOffset(text: string, from: number, to: number): number | undefined {
  if (from === to - 1 && text[from] === 'Z') return 0;
  const match = /^(?:\.\d{1,9})?(?:Z|([+-])(\d\d):?(\d\d))$/.exec(text.slice(from, to));
  if (!match) return undefined;
  const [, sign, hours, minutes] = match;
  return sign === undefined ? 0 : (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
}

/** The days since 1970-01-01 of a Gregorian date (Howard Hinnant, days_from_civil). */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** The index of the next comma in a line; the end of the line if there is none. */
function commaAfter(text: string, from: number, to: number): number {
  if (from >= to) return to;
  const at = text.indexOf(',', from);
  return at < 0 || at > to ? to : at;
}

function isLastComma(text: string, at: number, to: number): boolean {
  return at < to && commaAfter(text, at + 1, to) === to;
}

/** NaN if a character is no digit. */
function digits(text: string, from: number, count: number): number {
  let value = 0;
  for (let index = from; index < from + count; index += 1) {
    const digit = text.charCodeAt(index) - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

function parseDuration(text: string, from: number, to: number): number | undefined {
  if (from === to) return 0;
  let value = digits(text, from, to - from);
  if (Number.isNaN(value)) {
    const fraction = text.slice(from, to);
    if (/^\d{1,10}\.\d{1,9}$/.test(fraction)) value = Math.round(Number(fraction));
  }
  return value <= MAX_DURATION_MS ? value : undefined;
}
