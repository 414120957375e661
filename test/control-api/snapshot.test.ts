import { describe, expect, it } from 'vitest';
import { createSnapshotApi, type SnapshotApi } from '../../src/adapters/control-api/snapshot.ts';
import { all } from './support.ts';

const NOW_MS = Date.parse('2026-11-20T12:00:00Z');
const YEAR_MS = 365 * 86_400_000;

const FLEET = `
taken_at: 2026-11-19T10:00:00+01:00
projects:
  - id: web-shop-1
    name: web-shop
    account: red
    region_id: aws-eu-central-1
    pg_version: 17
    plan: scale
    computes:
      - id: ep-main
        branch_id: br-main
        branch: { name: main, default: true, protected: true }
        type: read_write
        min_cu: 1
        max_cu: 4
        suspend_timeout_seconds: 0
        state: active
        created_at: 2026-01-01T00:00:00Z
        started_at: 2026-11-01T00:00:00Z
        last_active: 2026-11-19T08:59:00Z
        connections: 12
        baseline: { min_cu: 0.25, max_cu: 2, suspend_timeout_seconds: -1 }
      - id: ep-preview
        branch_id: br-preview
        branch: { name: preview/1, default: false, protected: false }
        type: read_write
        min_cu: 0.25
        max_cu: 0.25
        suspend_timeout_seconds: -1
        state: idle
      - id: ep-replica
        branch_id: br-unknown
        type: read_only
        min_cu: 2
        max_cu: 2
        suspend_timeout_seconds: 60
        state: init
  - { id: empty, name: empty, region_id: aws-us-east-1, pg_version: 16, computes: [] }
`;

function read(text: string) {
  return createSnapshotApi({ text, name: 'fleet.yaml', nowMs: NOW_MS });
}

function open(text: string): SnapshotApi {
  const opened = read(text);
  if (!opened.ok) throw new Error(opened.problem);
  return opened.value;
}

describe('a fleet file as a control API', () => {
  const { api, facts, takenAtMs } = open(FLEET);
  const shop = { account: 'red', projectId: 'web-shop-1', name: 'web-shop' };

  it('lists projects, computes and branches as the API would', async () => {
    expect(takenAtMs).toBe(Date.parse('2026-11-19T09:00:00Z'));
    expect(await all(api.listProjects())).toEqual([
      {
        ok: true,
        value: [
          {
            account: 'red',
            projectId: 'web-shop-1',
            name: 'web-shop',
            regionId: 'aws-eu-central-1',
            pgVersion: 17,
            updatedAtMs: NOW_MS,
            computeLastActiveAtMs: Date.parse('2026-11-19T08:59:00Z'),
          },
          {
            account: 'default',
            projectId: 'empty',
            name: 'empty',
            regionId: 'aws-us-east-1',
            pgVersion: 16,
            updatedAtMs: NOW_MS,
          },
        ],
      },
    ]);
    const answer = await api.listComputes(shop);
    expect(answer).toMatchObject({
      ok: true,
      value: {
        computes: [
          {
            account: 'red',
            projectId: 'web-shop-1',
            projectName: 'web-shop',
            computeId: 'ep-main',
            branchId: 'br-main',
            type: 'read_write',
            regionId: 'aws-eu-central-1',
            minCu: 1,
            maxCu: 4,
            suspendTimeoutSeconds: 300,
            state: 'active',
            disabled: false,
            createdAtMs: Date.parse('2026-01-01T00:00:00Z'),
            startedAtMs: Date.parse('2026-11-01T00:00:00Z'),
          },
          { computeId: 'ep-preview', suspendTimeoutSeconds: -1, createdAtMs: NOW_MS - YEAR_MS },
          { computeId: 'ep-replica', type: 'read_only', state: 'init' },
        ],
      },
    });
    expect(await all(api.listBranches('web-shop-1'))).toEqual([
      {
        ok: true,
        value: [
          { branchId: 'br-main', name: 'main', isDefault: true, isProtected: true },
          {
            branchId: 'br-preview',
            name: 'preview/1',
            isDefault: false,
            isProtected: false,
            parentBranchId: 'br-main',
          },
        ],
      },
    ]);
    expect(await all(api.listOperations('web-shop-1'))).toEqual([]);
    expect(api.accountStatus()).toEqual([
      { account: 'red', key: 'unknown' },
      { account: 'default', key: 'unknown' },
    ]);
  });

  it('tells what the API has no field for', () => {
    expect([...facts]).toEqual([
      ['ep-main', { connections: 12, baseline: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: -1 } }],
    ]);
  });

  it('refuses every write, and a project that is not there', async () => {
    const error = { code: 'forbidden', message: 'the snapshot is read-only' };
    expect(await api.updateCompute('web-shop-1', 'ep-main', { maxCu: 8 })).toMatchObject({ ok: false, error });
    expect(await api.restartCompute('web-shop-1', 'ep-main')).toMatchObject({ ok: false, error });
    expect(await api.listComputes({ ...shop, projectId: 'gone' })).toMatchObject({
      ok: false,
      error: { code: 'not_found', message: 'the snapshot has no project gone' },
    });
  });

  it('is the same from JSON, and an empty fleet has no page', async () => {
    expect(await all(open('{"projects": []}').api.listProjects())).toEqual([]);
    const compute = { id: 'ep-1', branch_id: 'br-1', type: 'read_write', min_cu: 1, max_cu: 1 };
    const computes = [{ ...compute, suspend_timeout_seconds: 300, state: 'idle' }];
    const projects = [{ id: 'p', name: 'p', region_id: 'r', pg_version: 17, computes }];
    const answer = await open(JSON.stringify({ projects })).api.listComputes({ ...shop, projectId: 'p' });
    expect(answer).toMatchObject({ ok: true, value: { computes: [{ computeId: 'ep-1' }] } });
  });

  it('has projects without a name, which go by their id', async () => {
    const { api } = open('{"projects": [{ "id": "p", "region_id": "r", "computes": [] }]}');
    expect(await all(api.listProjects())).toMatchObject([{ value: [{ name: 'p', nameUnknown: true }] }]);
  });

  it('knows the parent of a branch as far as the file tells', async () => {
    const withBranch = (branch: string) =>
      FLEET.replace('{ name: preview/1, default: false, protected: false }', branch);
    const parentOf = async (text: string) => {
      const [page] = await all(open(text).api.listBranches('web-shop-1'));
      return page?.ok ? page.value.at(-1)?.parentBranchId : page;
    };
    expect(await parentOf(withBranch('{ name: a }'))).toBe('br-main');
    expect(await parentOf(withBranch('{ name: a, child: false }'))).toBeUndefined();
    expect(await parentOf(withBranch('{ name: a, default: true, child: true }'))).toBe('not-in-the-file');
    const withoutDefault = withBranch('{ name: a }').replace('default: true', 'default: false');
    expect(await parentOf(withoutDefault)).toBe('not-in-the-file');
  });
});

describe('a fleet file with a mistake', () => {
  it.each([
    [
      'a size that is not there',
      'max_cu: 4',
      'max_cu: 4.5',
      'projects.0.computes.0.max_cu: 4.5 CU is not a size; the nearest are 4 and 5',
    ],
    ['a range upside down', 'min_cu: 1', 'min_cu: 8', 'projects.0.computes.0: min_cu must not be greater than max_cu'],
    [
      'a timeout out of range',
      '_seconds: 60',
      '_seconds: 59',
      'projects.0.computes.2.suspend_timeout_seconds: must be -1 (never), 0 (the default) or whole seconds from 60 to 604800',
    ],
    [
      'an id that no path may hold',
      'id: ep-main',
      'id: ../ep',
      'projects.0.computes.0.id: must be 1 to 128 of a-z, 0-9 and "-"',
    ],
    ['a compute twice', 'id: ep-preview', 'id: ep-main', 'projects.0.computes.1.id: ep-main is there twice'],
    ['a project twice', 'id: empty', 'id: web-shop-1', 'projects.1.id: web-shop-1 is there twice'],
    [
      'a branch in two ways',
      'branch_id: br-preview',
      'branch_id: br-main',
      'projects.0.computes.1.branch: br-main is described in two ways',
    ],
    ['a missing key', '    region_id: aws-eu-central-1\n', '', 'projects.0.region_id: is missing'],
    ['a wrong type', 'name: empty', 'name: 7', 'projects.1.name: must be a text'],
    [
      'a state that there is not',
      'state: init',
      'state: asleep',
      'projects.0.computes.2.state: must be one of init, active, idle',
    ],
    [
      'an instant without offset',
      '2026-01-01T00:00:00Z',
      '2026-01-01',
      'projects.0.computes.0.created_at: must be an ISO 8601 instant with its offset, e.g. 2026-01-31T08:00:00Z',
    ],
    [
      'several',
      'state: init',
      'state: 7\n        connections: -1',
      'projects.0.computes.2.state: must be one of init, active, idle (and 1 more)',
    ],
    [
      'no YAML',
      '      - id: ep-main',
      '     - id: ep-main',
      'is neither YAML nor JSON: Nested mappings are not allowed in compact mappings at line 11, column 12',
    ],
  ])('says where: %s', (_, good, bad, problem) => {
    expect(FLEET).toContain(good);
    expect(read(FLEET.replace(good, bad))).toEqual({ ok: false, problem: `fleet.yaml: ${problem}` });
  });

  it('is refused whole: text that is no fleet, bombs, too much of it', () => {
    expect(read('')).toEqual({ ok: false, problem: 'fleet.yaml: the whole file: must be keys with values' });
    expect(read('[]')).toEqual({ ok: false, problem: 'fleet.yaml: the whole file: must be keys with values' });
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${'*a,'.repeat(9)}]\nc: &c [${'*b,'.repeat(9)}]\nprojects: [${'*c,'.repeat(9)}]`;
    expect(read(bomb)).toMatchObject({ ok: false, problem: expect.stringContaining('alias') });
    expect(read(`projects: ${'['.repeat(100_000)}`).ok).toBe(false);
    expect(read(' '.repeat(64 * 1024 * 1024 + 1))).toMatchObject({ ok: false });
  });
});
