import type { Fleet } from '../../emulator/fleet.ts';
import { eachCsvRow, readCsvText, shownField, wrongLine, zonedInstant } from '../csv.ts';

const KNOWN = ['time', 'compute', 'cu'] as const;
const COLUMNS = {
  known: KNOWN,
  needed: KNOWN,
  most: 1_000_000,
  tooMany: 'it has more than 1000000 lines; take less time',
};

/** The fleet with the demand of a CSV file: from each line on a compute needs `cu`, and 0 is nobody. */
export async function readTrace(file: string, fleet: Fleet): Promise<Fleet> {
  const text = await readCsvText('--trace', file, 64, 'take less time or fewer computes');
  const points = parseTrace(
    text,
    file,
    new Set(fleet.projects.flatMap(({ computes }) => computes.map(({ id }) => id))),
  );
  const projects = fleet.projects.map((project) => ({
    ...project,
    computes: project.computes.map((compute) => {
      const own = points.get(compute.id);
      if (own === undefined) return compute;
      return { ...compute, load: [...(compute.load ?? []), { class: 'trace' as const, points: own }] };
    }),
  }));
  return { ...fleet, projects };
}

type Points = { atMs: number; cu: number }[];

function parseTrace(text: string, file: string, computes: ReadonlySet<string>): Map<string, Points> {
  const points = new Map<string, Points>();
  eachCsvRow(text, file, COLUMNS, (field, line) => {
    const compute = field('compute');
    if (!computes.has(compute)) throw wrongLine(file, line, `the fleet has no compute ${shownField(compute)}`);
    const atMs = zonedInstant(field('time'));
    if (atMs === undefined) {
      const what = `time ${shownField(field('time'))} is no instant with a zone`;
      throw wrongLine(file, line, `${what}; write 2026-03-02T08:00:00Z`);
    }
    const cu = Number(field('cu'));
    if (!/^\d{1,3}(\.\d{1,9})?$/.test(field('cu')) || cu > 56) {
      throw wrongLine(file, line, `cu ${shownField(field('cu'))} is no size from 0 to 56`);
    }
    const own = points.get(compute) ?? [];
    const before = own.at(-1);
    if (before !== undefined && before.atMs >= atMs) {
      throw wrongLine(file, line, 'it is not after the line above of this compute; sort by time');
    }
    own.push({ atMs, cu });
    points.set(compute, own);
  });
  return points;
}
