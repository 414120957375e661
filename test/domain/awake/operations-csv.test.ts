import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createOperationLog, type OperationRow } from '../../../src/domain/awake/operation-log.ts';
import { createOperationsReader, OPERATIONS_HEADER, operationLine } from '../../../src/domain/awake/operations-csv.ts';

function read(text: string, pieceLength = text.length) {
  const log = createOperationLog();
  const reader = createOperationsReader(log);
  for (let at = 0; at < text.length; at += pieceLength) {
    const problem = reader.push(text.slice(at, at + pieceLength));
    if (problem) return { log, problem };
  }
  return { log, problem: reader.end() };
}

const file = (...lines: string[]) => [OPERATIONS_HEADER, ...lines, ''].join('\n');
const ROW = 'p-1,ep-1,start_compute,finished,2026-03-02T08:00:00Z,900';

describe('operations.csv', () => {
  it('is read as it was written, wherever its pieces end', () => {
    const row = fc.record({
      projectId: fc.constantFrom('p-1', 'p-2'),
      computeId: fc.constantFrom('ep-1', 'ep-2'),
      action: fc.constantFrom(
        'start_compute',
        'start_reserved_compute',
        'suspend_compute',
        'check_availability',
        'new_one',
      ),
      status: fc.constantFrom('finished', 'skipped', 'failed', 'error', 'cancelled', 'running'),
      createdAtMs: fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1000),
      totalDurationMs: fc.nat(100_000),
    });
    fc.assert(
      fc.property(fc.array(row), fc.integer({ min: 1, max: 50 }), fc.boolean(), (rows, pieceLength, newestFirst) => {
        const sorted: OperationRow[] = rows.toSorted(
          (a, b) => (newestFirst ? -1 : 1) * (a.createdAtMs - b.createdAtMs),
        );
        const { log, problem } = read(file(...sorted.map(operationLine)), pieceLength);
        expect(problem).toBeUndefined();
        const direct = createOperationLog();
        for (const one of sorted) direct.project(one.projectId).add(one);
        for (const { projectId, computeIds } of direct.projects) {
          const project = log.project(projectId);
          for (const id of computeIds) expect(project.eventsOf(id)).toEqual(direct.project(projectId).eventsOf(id));
          expect(project.fromMs).toBe(direct.project(projectId).fromMs);
        }
        expect(log.newestMs).toBe(direct.newestMs);
      }),
    );
  });

  it('takes other line ends, a byte order mark, offsets, fractions, and operations of no compute', () => {
    const text = `\u00ef\u00bb\u00bf${file(
      'p-1,ep-1,suspend_compute,finished,2026-03-02T10:00:00.123456+01:00,',
      'p-1,,create_branch,finished,2026-03-02T08:00:00Z,12.6',
    ).replaceAll('\n', '\r\n')}`;
    const { log, problem } = read(text);
    expect(problem).toBeUndefined();
    const atMs = Date.parse('2026-03-02T09:00:00Z');
    expect(log.project('p-1').eventsOf('ep-1')).toEqual([{ atMs, effect: 'suspend', result: 'done', durationMs: 0 }]);
    expect(log.project('p-1').fromMs).toBe(Date.parse('2026-03-02T08:00:00Z'));
  });

  it.each([
    ['', 1, /it is empty/],
    ['project,compute\n', 1, /first line is project_id/],
    [file(ROW, 'p-1,ep-1,start_compute'), 3, /not six fields/],
    [file(`${ROW},1`), 2, /not six fields/],
    [file(',ep-1,start_compute,finished,2026-03-02T08:00:00Z,'), 2, /no project_id/],
    [file('p-1,ep-1,start_compute,finished,2026-03-02T08:00:00,'), 2, /not an instant with a zone/],
    [file('p-1,ep-1,start_compute,finished,2026-13-02T08:00:00Z,'), 2, /not an instant/],
    [file('p-1,ep-1,start_compute,finished,yesterday,'), 2, /not an instant/],
    [file('p-1,ep-1,start_compute,finished,2026-03-02T08:00:00Z,-1'), 2, /duration_ms/],
    [file('p-1,ep-1,start_compute,finished,2026-03-02T08:00:00Z,many'), 2, /duration_ms/],
    [
      file(ROW, ROW.replace('08:00', '07:00'), 'p-2,ep-2,start_compute,finished,2026-03-02T09:00:00Z,', ROW),
      5,
      /p-1 is not sorted/,
    ],
  ])('says what is wrong in which line of %j', (text, line, message) => {
    for (const pieceLength of [1, 7, 1000]) {
      const { problem } = read(text, pieceLength);
      expect(problem).toEqual({ line, message: expect.stringMatching(message) });
    }
  });
});
