/** The composite action for pull requests, run step by step as the runner would, against a server in the place of GitHub. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { makeFolder } from '../support/platform.ts';

const ACTION = resolve('deploy/github-action');
const FLEET = resolve('deploy/try/fleet.yaml');
const REPOSITORY = 'team/policies';
const TOKEN = 'token-of-the-job';
const policy = (size: string) => `version: 1
timezone: Europe/Berlin
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"] }
    windows: [{ at: Mon-Fri 08:00-18:00, size: ${size} }]
    otherwise: { size: 0.25 }
`;

interface Step {
  name: string;
  run: string;
  env: Record<string, string>;
}
interface Action {
  inputs: Record<string, { default: string }>;
  runs: { steps: Step[] };
}
const action = parse(readFileSync(join(ACTION, 'action.yml'), 'utf8')) as Action;

let folder: Awaited<ReturnType<typeof makeFolder>>;
let host: Server;
let comments: { id: number; body: string; user: { type: string } }[];
let requests: string[];

beforeAll(async () => {
  folder = await makeFolder({});
  host = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      const { method, url = '', headers } = request;
      requests.push(`${method} ${url.split('?')[0]}`);
      const authorised = headers.authorization === `Bearer ${TOKEN}`;
      const body = text && (JSON.parse(text) as { body: string }).body;
      const id = Number(url.split('/').at(-1));
      if (method === 'POST') comments.push({ id: comments.length + 1, body, user: { type: 'Bot' } });
      if (method === 'PATCH') comments = comments.map((one) => (one.id === id ? { ...one, body } : one));
      response.writeHead(authorised ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify(method === 'GET' ? comments : {}));
    });
  });
  await new Promise<void>((listening) => host.listen(0, '127.0.0.1', listening));
  expect((await runSteps(repository('unused', '1', '1'), { steps: [0] })).status).toBe(0);
});
afterAll(async () => {
  host.close();
  await folder.remove();
});
beforeEach(() => {
  comments = [];
  requests = [];
});
afterEach(() => {
  for (const { body } of comments) expect(body).not.toContain(TOKEN);
});

/** A checkout with two commits: the policies of the base, and those of the pull request. */
function repository(name: string, before: string, after: string): string {
  const path = join(folder.path, name);
  mkdirSync(join(path, 'policies'), { recursive: true });
  const git = (...args: string[]) => {
    const by = ['-c', 'user.name=ann', '-c', 'user.email=ann@example.com'];
    expect(spawnSync('git', [...by, ...args], { cwd: path }).status).toBe(0);
  };
  git('init', '--quiet');
  for (const size of [before, after]) {
    writeFileSync(join(path, 'policies/web.yaml'), policy(size));
    git('add', '.');
    git('commit', '--quiet', '--allow-empty', '--message', `size ${size}`);
  }
  return path;
}

/** Runs steps of the action in a checkout, as the runner does: bash, its environment, and files for its outputs. */
async function runSteps(cwd: string, { from = REPOSITORY, steps = [1, 2], inputs = {} }: Options = {}) {
  const temp = join(folder.path, 'temp');
  mkdirSync(temp, { recursive: true });
  const event = join(folder.path, 'event.json');
  const baseSha = spawnSync('git', ['rev-parse', 'HEAD^'], { cwd, encoding: 'utf8' }).stdout.trim();
  writeFileSync(
    event,
    JSON.stringify({ pull_request: { number: 7, base: { sha: baseSha }, head: { repo: { full_name: from } } } }),
  );
  const summary = join(folder.path, 'summary.md');
  writeFileSync(summary, '');
  const values: Record<string, string> = {
    'github.action_path': ACTION,
    'github.token': TOKEN,
    "github.event.pull_request.base.sha || 'HEAD^'": baseSha,
  };
  const fill = (text: string): string =>
    text.replace(/\$\{\{ (.+?) \}\}/g, (_whole, name: string) => {
      expect(Object.keys(values)).toContain(name);
      return values[name] ?? '';
    });
  const given: Record<string, string> = { fleet: FLEET, package: inject('ebbTarball'), ...inputs };
  for (const [name, input] of Object.entries(action.inputs))
    values[`inputs.${name}`] = given[name] ?? fill(input.default);

  let output = '';
  for (const step of steps.map((index) => action.runs.steps[index] as Step)) {
    const env = {
      ...process.env,
      PATH: `${join(temp, 'ebb/bin')}:${process.env.PATH}`,
      RUNNER_TEMP: temp,
      GITHUB_API_URL: `http://127.0.0.1:${(host.address() as AddressInfo).port}`,
      GITHUB_EVENT_PATH: event,
      GITHUB_PATH: join(folder.path, 'path'),
      GITHUB_REPOSITORY: REPOSITORY,
      GITHUB_STEP_SUMMARY: summary,
      ...Object.fromEntries(Object.entries(step.env).map(([name, value]) => [name, fill(value)])),
    };
    const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run], { cwd, env });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const status = await new Promise<number | null>((ended) => child.on('close', ended));
    if (status !== 0) return { status, output, summary: readFileSync(summary, 'utf8') };
  }
  expect(output).not.toContain(TOKEN);
  return { status: 0, output, summary: readFileSync(summary, 'utf8') };
}
interface Options {
  from?: string;
  steps?: number[];
  inputs?: Record<string, string>;
}

describe('the action for pull requests', () => {
  it('is valid', () => {
    const { status, stdout } = spawnSync('node_modules/.bin/action-validator', [join(ACTION, 'action.yml')]);
    expect({ status, stdout: String(stdout) }).toEqual({ status: 0, stdout: '' });
  });

  it('comments what changes, and keeps that comment up to date', async () => {
    expect(await runSteps(repository('first', '1', '2'))).toMatchObject({ status: 0 });
    expect(comments).toHaveLength(1);
    expect(comments[0]?.body).toMatch(/^\*\*2 computes: `web-shop`/m);

    expect((await runSteps(repository('second', '1', '4'))).status).toBe(0);
    expect(comments).toHaveLength(1);
    expect(requests.at(-1)).toBe(`PATCH /repos/${REPOSITORY}/issues/comments/1`);

    requests = [];
    expect((await runSteps(join(folder.path, 'second'))).status).toBe(0);
    expect(requests).toEqual([`GET /repos/${REPOSITORY}/issues/7/comments`]);
  });

  it('writes no comment where nothing changes, but says so in one that is there', async () => {
    const same = repository('same', '1', '1');
    expect((await runSteps(same)).status).toBe(0);
    expect(comments).toEqual([]);

    await runSteps(join(folder.path, 'first'));
    await runSteps(same);
    expect(comments.map(({ body }) => body)).toEqual([expect.stringContaining('no change for any compute')]);
  });

  it("leaves a person's comment alone, even with its marker", async () => {
    const body = '<!-- ebb: comparison of policies -->\nmine';
    comments = [{ id: 1, body, user: { type: 'User' } }];
    await runSteps(join(folder.path, 'first'));
    expect(comments.map((one) => one.body)).toEqual([body, expect.stringContaining('ebb diff')]);
  });

  it('from a fork writes the summary of the job, and asks nothing of the host', async () => {
    const { status, summary } = await runSteps(join(folder.path, 'first'), { from: 'stranger/policies' });
    expect({ status, requests }).toEqual({ status: 0, requests: [] });
    expect(summary).toContain('### ebb diff: ');
  });

  it('marks the line of a broken policy, and fails', async () => {
    const { status, output } = await runSteps(repository('broken', '1', '-1'));
    expect(status).toBe(1);
    expect(output).toMatch(/^::error file=policies\/web\.yaml,line=\d+,/m);
    expect(requests).toEqual([]);
  });

  it('fails on a warning, unless told otherwise', async () => {
    const strange = repository('warning', '1', '2');
    writeFileSync(
      join(strange, 'policies/none.yaml'),
      policy('1').replace('web-*', 'nobody').replace('office-hours', 'none'),
    );
    expect(await runSteps(strange)).toMatchObject({ status: 1, output: expect.stringContaining('none.yaml') });
    expect((await runSteps(strange, { inputs: { strict: 'false' } })).status).toBe(0);
  });

  it('says what to do where the history is missing', async () => {
    const shallow = join(folder.path, 'shallow');
    spawnSync('git', ['clone', '--quiet', '--depth', '1', `file://${join(folder.path, 'first')}`, shallow]);
    const { status, output } = await runSteps(shallow, { steps: [1] });
    expect(status).toBe(1);
    expect(output).toContain('fetch-depth: 0');
  });
});
