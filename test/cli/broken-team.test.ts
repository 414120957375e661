/** Files of teams of which some can't be read: commands go on with those of the others, and say so. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { OPERATIONS_HEADER } from '../../src/domain/awake/operations-csv.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';
import { fleetFile, MONDAY_NINE, onTrial } from './fleet-files.ts';

const SETTINGS = `policies: ["*.team.yaml"]
teams:
  web: { policies: "web.*", projects: ["web-*"] }
  api: { policies: "api.*", projects: ["api-*"] }
`;
const sized = (team: string) =>
  `version: 1\npolicies:\n  - { name: size, kind: schedule, select: { projects: ["${team}-*"] }, windows: [{ at: always, size: 4 }], otherwise: leave }\n`;

async function aFolder() {
  const folder = await makeFolder({
    'ebb.yaml': SETTINGS,
    'api.team.yaml': sized('api'),
    'fleet.json': fleetFile({ 'web-eu/ep-web': {}, 'api-eu/ep-api': {} }),
  });
  onTestFinished(() => folder.remove());
  return {
    write: (name: string, text: string) => writeFile(join(folder.path, name), text),
    async ebb(...args: string[]) {
      const run = startEbb(args, { cwd: folder.path });
      return { status: await run.ended, stdout: run.lines.join('\n'), stderr: run.stderr() };
    },
  };
}

const PLAN = ['plan', '--fleet', 'fleet.json', '--at', MONDAY_NINE];

it('a team without files is an error, and the others are planned', async () => {
  const { ebb } = await aFolder();
  const said = 'policies of team web: matches no file; a file meant for this team would belong to none';
  const [validated, plan] = await Promise.all([ebb('validate'), ebb(...PLAN)]);
  expect([validated.status, validated.stderr]).toEqual([1, expect.stringContaining(said)]);
  expect([plan.status, plan.stderr]).toEqual([1, expect.stringMatching(/^error: .*web\.\*: policies of team web/)]);
  expect(plan.stdout).toMatch(/ep-api[\s\S]*4 CU/);
});

it('broken files of a team hinder no other: they are named, the others are planned, and the exit code is 1', async () => {
  const { write, ebb } = await aFolder();
  await write('web.team.yaml', 'version: 1\npolicies: [{ name: x, kind: schedul }]\n');
  const [validated, plan] = await Promise.all([ebb('validate'), ebb(...PLAN)]);
  const said = expect.stringContaining('web.team.yaml:2:');
  expect([validated.status, validated.stderr]).toEqual([1, said]);
  expect([plan.status, plan.stderr]).toEqual([1, said]);
  // The line of the file, and a caret under the place.
  expect(plan.stderr).toMatch(/\n {2}2 \| policies: \[\{ name: x, kind: schedul \}\]\n +\| +\^+\n/);
  expect(plan.stdout).toMatch(/ep-api[\s\S]*4 CU/);
  expect(plan.stdout).not.toMatch(/ep-web[\s\S]*4 CU/);
});

it('what is recommended, ignored by Terraform or measured by a trial names computes of a broken team, with exit code 1', async () => {
  const { write, ebb } = await aFolder();
  await write('web.team.yaml', 'version: 1\npolicies: [{ name: x, kind: schedul }]\n');
  await write('trial.yaml', onTrial('2026-03-02', '2026-05-11'));
  await write('operations.csv', `${OPERATIONS_HEADER}\n`);
  const past = ['--operations', 'operations.csv', '--fleet', 'fleet.json'];
  const [recommend, json, terraform, savings] = await Promise.all([
    ebb('recommend', ...past),
    ebb('recommend', ...past, '--json'),
    ebb('terraform', '--fleet', 'fleet.json'),
    ebb('savings', '--design', '--fleet', 'fleet.json', '--policies', '*.team.yaml,trial.yaml'),
  ]);
  const said = (what: string) => `web: 1 compute ${what}: its policies can't be read (web.team.yaml:2:`;
  expect(recommend.stdout).toContain(said('without a proposed policy'));
  const named = [{ team: 'web', problem: expect.stringContaining('web.team.yaml:2:'), computes: ['ep-web'] }];
  expect(JSON.parse(json.stdout)).toMatchObject({ not_planned: named });
  expect(terraform.stderr).toContain(said('may have more to ignore'));
  expect(savings.stderr).toContain(said('counted as unchanged'));
  expect([recommend, json, terraform, savings].map(({ status }) => status)).toEqual([1, 1, 1, 1]);
});

it('an explanation says that what a broken team wants is not known, not that nothing is wanted', async () => {
  const { write, ebb } = await aFolder();
  await write('web.team.yaml', 'version: 1\npolicies: [{ name: x, kind: schedul }]\n');
  const explain = ['explain', 'ep-web', '--fleet', 'fleet.json', '--at', MONDAY_NINE];
  const [text, json] = await Promise.all([ebb(...explain), ebb(...explain, '--json')]);
  expect([text.status, json.status]).toEqual([1, 1]);
  for (const said of [
    '  wanted    not known',
    '\nNot known\n',
    '[policies_unread]',
    '\nNext boundary not known',
    '  daemon    none',
  ])
    expect(text.stdout).toContain(said);
  expect(text.stdout).not.toMatch(/no policy|not-loaded|none in sight/);
  expect(JSON.parse(json.stdout)).toMatchObject({
    ...{ desired_known: false, daemon_uses: null, not_planned: [{ team: 'web', computes: ['ep-web'] }] },
    reasons: [{ code: 'policies_unread', message: expect.stringContaining("can't be read here") }],
  });
});

it('a replay says that computes of a broken team count as unchanged, with exit code 1', async () => {
  const { write, ebb } = await aFolder();
  await write('web.team.yaml', 'version: 1\npolicies: [{ name: x, kind: schedul }]\n');
  await write(
    'room.yaml',
    `version: 1
sources: { counts: { from: prometheus, url: "http://127.0.0.1:9", query: 'c{id="$compute"}' } }
policies: [{ name: room, kind: headroom, select: { projects: ["web-*"] }, connections: counts, target: 80%, max_size: 2 }]
`,
  );
  const counts = ['00', '01', '02'].map((minute) => `2026-03-02T00:${minute}:00Z,ep-web,10\n`).join('');
  await write('counts.csv', `time,compute,connections\n${counts}`);
  const { status, stderr } = await ebb(
    ...['backtest', 'ep-web', '--policy', 'room', '--connections', 'counts.csv', '--fleet', 'fleet.json'],
    ...['--policies', '*.team.yaml,room.yaml'],
  );
  const said = "note: web: 1 compute counted as unchanged: its policies can't be read (web.team.yaml:2:";
  expect([status, stderr]).toEqual([1, expect.stringContaining(said)]);
});

it('what policies name of the settings, they may name for each command', async () => {
  const { write, ebb } = await aFolder();
  await write('ebb.yaml', `${SETTINGS}notify:\n  web: { to: slack, url_file: hook }\n`);
  await write(
    'web.team.yaml',
    `version: 1
policies:
  - { name: month, kind: budget, month: 2000 CUh, select: { projects: ["web-*"] }, steps: [{ at: 80% projected, notify: [web] }] }
  - { name: size, kind: schedule, select: { projects: ["web-*"] }, notify: [web], windows: [{ at: always, size: 4 }], otherwise: leave }
`,
  );
  await write('operations.csv', `${OPERATIONS_HEADER}\n`);
  const fleet = ['--fleet', 'fleet.json'];
  const runs = [
    ['validate'],
    ['plan', ...fleet, '--at', MONDAY_NINE],
    ['recommend', '--operations', 'operations.csv', ...fleet],
    ['terraform', ...fleet],
  ];
  for (const args of runs) {
    const { status, stderr } = await ebb(...args);
    expect([args[0], status === 1, stderr]).toEqual([args[0], false, expect.not.stringContaining('receiver')]);
  }
});

it("policies that can't be read at all are no reason to recommend nothing, but an error", async () => {
  const { write, ebb } = await aFolder();
  await write('ebb.yaml', 'policies: "api.team.yaml"\n');
  await write('api.team.yaml', 'version: 1\npolicies: [{ name: x, kind: schedul }]\n');
  await write('operations.csv', `${OPERATIONS_HEADER}\n`);
  const run = await ebb('recommend', '--operations', 'operations.csv', '--fleet', 'fleet.json');
  expect([run.status, run.stderr]).toEqual([
    1,
    expect.stringMatching(/policies can't be read, .*\(api\.team\.yaml:2:/),
  ]);
  const none = await ebb(
    ...['recommend', '--operations', 'operations.csv', '--fleet', 'fleet.json', '--policies', 'none'],
  );
  expect([none.status, none.stderr]).toEqual([0, expect.not.stringContaining("can't be read")]);
});

it('computes of a broken team are not planned: neither counted as wanted nor part of any sum, and named', async () => {
  const { write, ebb } = await aFolder();
  await write('web.team.yaml', 'version: 1\npolicies: [{ name: x, kind: schedul }]\n');
  const hours = ['web', 'api'].flatMap((team) =>
    Array.from({ length: 168 }, (_, hour) => {
      const start = new Date(Date.parse(MONDAY_NINE) - (168 - hour) * 3_600_000).toISOString().replace('.000Z', 'Z');
      return `${team}-eu/br-${team},${team}-eu,br-${team},${start},3600,3600`;
    }),
  );
  await write('usage.csv', `unit,project_id,branch_id,start,seconds,cu_seconds\n${hours.join('\n')}\n`);
  const [plan, ofWeb, json, forecast, diff, explained, matches] = await Promise.all([
    ebb(...PLAN, '--usage', 'usage.csv'),
    ebb(...PLAN, '--owner', 'web'),
    ebb(...PLAN, '--json'),
    ebb('forecast', '--fleet', 'fleet.json', '--json'),
    ebb('diff', '*.team.yaml', '*.team.yaml', '--fleet', 'fleet.json'),
    ebb('explain', 'ep-web', '--fleet', 'fleet.json'),
    ebb('validate', '--matches', '--fleet', 'fleet.json'),
  ]);
  const said = (what: string) => `web: 1 compute ${what}: its policies can't be read (web.team.yaml:2:`;
  expect(plan.stdout).toContain(said('not planned'));
  expect(plan.stdout).toMatch(/, 0 as wanted, 1 not planned\n.* Without the 1 compute not planned\./);
  expect(plan.stdout).not.toMatch(/of 2 computes have usage|Exit code 2/);
  expect(ofWeb.stdout).toMatch(/0 to change now, 0 waiting, 0 as wanted, 1 not planned$/);
  const named = [{ team: 'web', problem: expect.stringContaining('web.team.yaml:2:'), computes: ['ep-web'] }];
  expect(JSON.parse(json.stdout)).toMatchObject({ computes: [{}, {}], not_planned: named });
  expect(JSON.parse(forecast.stdout)).toMatchObject({ computes: [{ compute_id: 'ep-api' }], not_planned: named });
  expect(diff.stdout).toContain('ebb diff: no change for any compute (of 1)');
  expect(diff.stdout).toContain(said('not compared'));
  expect(explained.stdout).toContain("web: what it wants is not known: its policies can't be read (web.team.yaml:2:");
  expect(matches.stdout).toContain("policies of web can't be read: what they select is not known");
  expect([plan, ofWeb, json, forecast, diff, explained, matches].map(({ status }) => status)).toEqual(Array(7).fill(1));
});
