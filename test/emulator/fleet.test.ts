import { expect, it } from 'vitest';
import { parseFleet } from '../../src/emulator/fleet-file.ts';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';

const PROJECT = { id: 'shop', name: 'shop-prod', region_id: 'aws-eu-central-1', pg_version: 17 };
const COMPUTE = {
  id: 'ep-web',
  branch_id: 'br-main',
  type: 'read_write',
  min_cu: 0.25,
  max_cu: 2,
  suspend_timeout_seconds: 300,
  state: 'active',
};

function fileWith(...computes: object[]): string {
  return JSON.stringify({ projects: [{ ...PROJECT, computes }] });
}

it('reads every field of a fleet file, and leaves out what it does not know', () => {
  const more = {
    created_at: '2026-01-01T00:00:00Z',
    last_active: '2026-11-01T00:00:00Z',
    connections: 3,
    baseline: { min_cu: 1 },
  };
  expect(
    parseFleet(fileWith({ ...COMPUTE, ...more, branch: { name: 'main', default: true, protected: false } })),
  ).toEqual({
    ok: true,
    fleet: {
      projects: [
        {
          id: 'shop',
          name: 'shop-prod',
          regionId: 'aws-eu-central-1',
          pgVersion: 17,
          computes: [
            {
              id: 'ep-web',
              branchId: 'br-main',
              branch: { name: 'main', default: true, protected: false },
              type: 'read_write',
              minCu: 0.25,
              maxCu: 2,
              suspendTimeoutSeconds: 300,
              state: 'active',
              createdAtMs: Date.parse('2026-01-01T00:00:00Z'),
              lastActiveAtMs: Date.parse('2026-11-01T00:00:00Z'),
              connections: 3,
            },
          ],
        },
      ],
    },
  });
});

it.each([
  ['a size that does not exist', fileWith({ ...COMPUTE, min_cu: 0.3 }), 'min_cu'],
  ['a range that spans too much', fileWith({ ...COMPUTE, max_cu: 16 }), 'ep-web'],
  ['a timeout that is too short', fileWith({ ...COMPUTE, suspend_timeout_seconds: 5 }), 'ep-web'],
  ['a missing field', fileWith({ ...COMPUTE, state: undefined }), 'projects.0.computes.0.state'],
  ['an id that occurs twice', fileWith(COMPUTE, { ...COMPUTE, branch_id: 'br-2' }), 'ep-web'],
  ['two primaries on a branch', fileWith(COMPUTE, { ...COMPUTE, id: 'ep-two' }), 'br-main'],
  ['no YAML', 'projects: [', 'not YAML or JSON'],
  ['an empty file', '', 'the file'],
])('rejects %s with one line that names the place', (_, text, place) => {
  const result = parseFleet(text);
  expect(result).toEqual({ ok: false, message: expect.stringContaining(place) });
  expect(result).not.toEqual({ ok: false, message: expect.stringContaining('\n') });
});

it('generates equal fleets from equal seeds, with unique ids and one primary for each branch', () => {
  const options = { projects: 200, computesPerProject: 3, seed: 7 };
  const fleet = generateFleet(options);
  expect(generateFleet(options)).toEqual(fleet);
  expect(generateFleet({ ...options, seed: 8 })).not.toEqual(fleet);
  const computes = fleet.projects.flatMap((project) => project.computes);
  expect(new Set(computes.map(({ id }) => id)).size).toBe(600);
  const primaries = computes.filter(({ type }) => type === 'read_write').map(({ branchId }) => branchId);
  expect(new Set(primaries).size).toBe(primaries.length);
});
