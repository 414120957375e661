/** Clients that nobody here wrote, unchanged: what they understand is what the service says. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createApiClient, EndpointType } from '@neondatabase/api-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { compute } from '../emulator/support.ts';

const execute = promisify(execFile);
const NEONCTL_PACKAGE = fileURLToPath(import.meta.resolve('neonctl/package.json'));

let emulator: Emulator;
let configFolder: string;
let neonctlEntry: string;

beforeAll(async () => {
  configFolder = await mkdtemp(join(tmpdir(), 'ebb-neonctl-'));
  const { bin } = JSON.parse(await readFile(NEONCTL_PACKAGE, 'utf8'));
  neonctlEntry = join(dirname(NEONCTL_PACKAGE), bin.neonctl);
  const project = (id: string) => ({
    id,
    name: `${id}-prod`,
    regionId: 'aws-eu-central-1',
    pgVersion: 17,
    computes: [
      compute({ id: `ep-${id}`, branchId: `br-${id}`, branch: { name: 'main', default: true, protected: false } }),
    ],
  });
  emulator = await startEmulator({
    listen: { host: '127.0.0.1', port: 0 },
    fleet: { projects: ['one', 'two'].map(project) },
    operationTimeMs: 0,
  });
});
afterAll(async () => {
  await emulator.close();
  await rm(configFolder, { recursive: true, force: true });
});

async function neonctl(...args: string[]) {
  const flags = [
    '--api-host',
    emulator.url,
    '--api-key',
    emulator.apiKey,
    '--no-analytics',
    '--config-dir',
    configFolder,
    '-o',
    'json',
  ];
  const { stdout } = await execute(process.execPath, [neonctlEntry, ...args, ...flags], {
    cwd: configFolder,
    env: { PATH: process.env.PATH, HOME: configFolder, CI: '1' },
  });
  return JSON.parse(stdout);
}

it('neonctl creates, changes, restarts, deletes and lists', async () => {
  const computes = '/projects/one/endpoints';
  const fields = ['-F', 'endpoint.branch_id=br-one', '-F', 'endpoint.type=read_only'];
  const created = await neonctl('api', computes, '-X', 'POST', ...fields);
  expect(created).toMatchObject({ endpoint: { type: 'read_only', current_state: 'init' } });
  const path = `${computes}/${created.endpoint.id}`;
  const changed = await neonctl('api', path, '-X', 'PATCH', '-F', 'endpoint.autoscaling_limit_max_cu=2');
  expect(changed).toMatchObject({ endpoint: { autoscaling_limit_max_cu: 2 }, operations: [{}, {}, {}] });
  expect((await neonctl('api', `${path}/restart`, '-X', 'POST')).operations).toHaveLength(2);
  expect((await neonctl('api', path, '-X', 'DELETE')).endpoint.id).toBe(created.endpoint.id);
  const [projects, branches, operations] = await Promise.all([
    neonctl('projects', 'list'),
    neonctl('branches', 'list', '--project-id', 'one'),
    neonctl('operations', 'list', '--project-id', 'one'),
  ]);
  expect(projects.projects.map(({ id }: { id: string }) => id)).toEqual(['one', 'two']);
  expect(branches).toMatchObject([{ id: 'br-one', name: 'main', default: true }]);
  expect(operations.map(({ action }: { action: string }) => action)).toContain('apply_config');
});

it('neonctl creates a branch with a compute, and says who it is', async () => {
  const [{ branch, endpoints }, me] = await Promise.all([
    neonctl('branches', 'create', '--project-id', 'two', '--name', 'dev'),
    neonctl('me'),
  ]);
  expect(branch).toMatchObject({ name: 'dev', parent_id: 'br-two' });
  expect(endpoints).toMatchObject([{ type: 'read_write' }]);
  expect(me.email).toBe('emulator@example.com');
});

it("the vendor's client for TypeScript lists, creates, changes, restarts and deletes", async () => {
  const api = createApiClient({ apiKey: emulator.apiKey, baseURL: emulator.url });
  expect((await api.listProjects({ limit: 1 })).data).toMatchObject({
    projects: [{ id: 'one' }],
    pagination: { cursor: 'one' },
  });
  const { data: created } = await api.createProject({ project: { name: 'made' } });
  const projectId = created.project.id;
  const replica = { endpoint: { branch_id: created.branch.id, type: EndpointType.ReadOnly } };
  const { data: added } = await api.createProjectEndpoint(projectId, replica);
  const { data: listed } = await api.listProjectEndpoints(projectId);
  expect(listed.endpoints).toHaveLength(2);
  const change = { endpoint: { suspend_timeout_seconds: 600 } };
  const { data: changed } = await api.updateProjectEndpoint(projectId, added.endpoint.id, change);
  expect(changed).toMatchObject({ endpoint: { suspend_timeout_seconds: 600 }, operations: [] });
  expect((await api.restartProjectEndpoint(projectId, added.endpoint.id)).data.operations).toHaveLength(2);
  expect((await api.deleteProjectEndpoint(projectId, added.endpoint.id)).status).toBe(200);
  const { data: operations } = await api.listProjectOperations({ projectId, limit: 100 });
  const [newest] = operations.operations;
  expect((await api.getProjectOperation(projectId, newest?.id ?? '')).data.operation).toMatchObject({
    status: 'finished',
  });
  await expect(api.getProject('nothing')).rejects.toMatchObject({ response: { status: 404 } });
});
