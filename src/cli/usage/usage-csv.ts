import { csvLine } from '../../common/csv-text.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { roundTo } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import {
  bucketProblem,
  type UsageBucket,
  type UsageSeries,
  type UsageUnit,
  unitName,
} from '../../domain/usage/usage.ts';
import { eachCsvRow, readCsvText, shownField, wrongLine, zonedInstant } from '../csv.ts';

const MAX_MIB = 256;
const MAX_BUCKETS = 3_000_000;

const KNOWN = ['unit', 'project_id', 'branch_id', 'start', 'seconds', 'cu_seconds'] as const;
const COLUMNS = {
  known: KNOWN,
  needed: KNOWN,
  most: MAX_BUCKETS,
  tooMany: `it has more than ${MAX_BUCKETS} buckets; take less time, or days instead of hours`,
};
type Field = (column: (typeof KNOWN)[number]) => string;

/** The number of computes in a unit; undefined if it is unknown. */
type ComputesOf = (unit: UsageUnit) => number | undefined;

/** Counts the computes of a fleet that are in a unit. */
export function countInUnit(computes: readonly Compute[]): (unit: UsageUnit) => number {
  return ({ projectId, branchId }) =>
    computes.filter((one) => one.projectId === projectId && (branchId === null || one.branchId === branchId)).length;
}

/** Reads the series of a `usage.csv`. Throws a UserError with the line of the problem. */
export async function readUsageCsv(file: string, computesOf: ComputesOf): Promise<UsageSeries[]> {
  const text = await readCsvText('--usage', file, MAX_MIB, 'take less time, or days instead of hours');
  return parseUsageCsv(text, file, computesOf);
}

/** Parses the text of a `usage.csv`. Errors call the text `file`. */
export function parseUsageCsv(text: string, file: string, computesOf: ComputesOf): UsageSeries[] {
  const series = new Map<string, UsageUnit & { buckets: UsageBucket[]; computes: number | undefined }>();
  const startOf = cachedInstants();
  eachCsvRow(text, file, COLUMNS, (field, line) => {
    const unit = unitIn(field, line, file);
    const name = unitName(unit);
    let known = series.get(name);
    if (known === undefined) {
      known = { ...unit, buckets: [], computes: computesOf(unit) };
      series.set(name, known);
    }
    const bucket = bucketIn(field, line, file, startOf);
    const problem = bucketProblem(bucket, known.buckets.at(-1), known.computes);
    if (problem !== undefined) throw wrongLine(file, line, problem);
    known.buckets.push(bucket);
  });
  return [...series.values()].map(({ projectId, branchId, buckets }) => ({ projectId, branchId, buckets }));
}

/** Returns a parser of instants that caches its results, since a file repeats few instants on many lines. */
function cachedInstants(): (text: string) => number | undefined {
  const known = new Map<string, number | undefined>();
  return (text) => {
    if (!known.has(text)) known.set(text, zonedInstant(text));
    return known.get(text);
  };
}

function unitIn(field: Field, line: number, file: string): UsageUnit {
  const unit = { projectId: field('project_id'), branchId: field('branch_id') || null };
  if (unit.projectId === '') throw wrongLine(file, line, 'no project_id; write the id of its project');
  if (field('unit') === unitName(unit)) return unit;
  const what = `unit ${shownField(field('unit'))} is not that of project_id and branch_id`;
  throw wrongLine(file, line, `${what}; write ${shownField(unitName(unit))}`);
}

function bucketIn(
  field: Field,
  line: number,
  file: string,
  startOf: (text: string) => number | undefined,
): UsageBucket {
  const startMs = startOf(field('start'));
  if (startMs === undefined) {
    const what = `start ${shownField(field('start'))} is not an instant with a zone`;
    throw wrongLine(file, line, `${what}; write 2026-03-02T08:00:00Z`);
  }
  const seconds = Number(field('seconds'));
  if (!/^[1-9]\d{0,7}$/.test(field('seconds'))) {
    throw wrongLine(file, line, `seconds ${shownField(field('seconds'))} is no length; write 3600 or 86400`);
  }
  const text = field('cu_seconds');
  if (text !== '' && !/^\d{1,12}(\.\d{1,20})?$/.test(text)) {
    const what = `cu_seconds ${shownField(text)} is not a number of at least 0`;
    throw wrongLine(file, line, `${what}; leave it empty where it is unknown`);
  }
  return { startMs, seconds, cuSeconds: text === '' ? null : Number(text) };
}

/** The lines of a `usage.csv`, which {@link parseUsageCsv} reads back. */
export function* usageCsvLines(series: Iterable<UsageSeries>): Generator<string> {
  yield `${csvLine(KNOWN)}\n`;
  for (const { projectId, branchId, buckets } of series) {
    const unit = csvLine([unitName({ projectId, branchId }), projectId, branchId]);
    for (const { startMs, seconds, cuSeconds } of buckets) {
      yield `${unit},${csvLine([isoInstant(startMs), seconds, cuSeconds === null ? null : roundTo(cuSeconds, 6)])}\n`;
    }
  }
}
