/** `ebb audit`, and that commands on the store leave their lines there. */
import { hostname, userInfo } from 'node:os';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AuditLine } from '../../src/cli/audit.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

describeWith('redis-server', 'ebb audit', () => {
  const me = `${userInfo().username}@${hostname()}`;
  const undo: (() => Promise<unknown>)[] = [];
  let cwd = '';
  let env: Record<string, string> = {};
  beforeEach(async () => {
    const redis = await startRedisServer();
    undo.push(() => redis.close());
    const folder = await makeFolder();
    undo.push(() => folder.remove());
    cwd = folder.path;
    env = { EBB_QUEUE_URL: redis.url, EBB_GROUP: 'audit' };
  });
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  async function ebb(...args: string[]) {
    const run = startEbb(args, { cwd, env });
    const status = await run.ended;
    return { status, lines: run.lines, stderr: run.stderr().trimEnd() };
  }

  it('of a store that no daemon has used says which one that is, as other commands do', async () => {
    const other = 'the group audit yet: if one runs, this command needs the same EBB_GROUP';
    const commands = [
      ['audit', '--json'],
      ['history'],
      ['freeze', '--all', '--for', '1h', '--reason', 'incident'],
      ['store', 'dump', '--out', 'store.jsonl'],
    ];
    for (const command of commands) {
      const { status, stderr } = await ebb(...command);
      expect([status, stderr]).toEqual([0, `note: no daemon has used ${env.EBB_QUEUE_URL} for ${other}`]);
    }
    delete env.EBB_GROUP;
    const { lines, stderr } = await ebb('audit', '--json');
    expect([lines, stderr]).toEqual([
      ['[]'],
      expect.stringMatching(
        / for https:\/\/console\.neon\.tech\/api\/v2 \(accounts: default\) yet: if one runs, this command needs the same EBB_API_URL, /,
      ),
    ]);
  });

  it('shows what people have commanded, by whom as the system knows them, and why', async () => {
    const why = ['--for', '1h', '--reason'];
    const owned = ['--by', 'ann'];
    const commands = [
      ['hold', 'p-one/ep-one', ...why, 'import, part 1', '--size', '2'],
      ['freeze', '--all', ...why, '=incident', ...owned],
      ['unfreeze', '--all', '--yes'],
      ['approve', 'abcdef012345', '--yes', ...owned],
    ];
    for (const command of commands) expect(await ebb(...command)).toMatchObject({ status: 0 });
    const shown = await ebb('audit', '--json');
    expect(shown.status).toBe(0);
    const lines = JSON.parse(shown.lines.join('\n')) as AuditLine[];
    expect(lines.map(({ kind, who, verified, reasons: [first] }) => [kind, who, verified, first?.message])).toEqual([
      ['approve', me, false, 'policy set abcdef012345 may become current (in the name of ann)'],
      ['freeze', me, false, 'unfrozen: all computes'],
      [
        'freeze',
        me,
        false,
        expect.stringMatching(/^frozen: all computes, until .*: =incident \(in the name of ann\)$/),
      ],
      ['hold', me, false, expect.stringMatching(/^held: size 2 CU, until .*: import, part 1$/)],
    ]);
    expect(new Set(lines.map(({ request_id }) => request_id)).size).toBe(4);

    const csv = await ebb('audit', '--csv', '--compute', 'p-one/ep-one');
    expect(csv.lines[0]).toBe(
      'at,who,verified,kind,project_id,compute_id,owner,policy,from,to,reasons,set_hash,revision,request_id,id',
    );
    expect(csv.lines).toHaveLength(2);
    expect(csv.lines[1]).toMatch(/,no,hold,p-one,ep-one,,,,,"held: size 2 CU, until .*: import, part 1",/);
    expect((await ebb('audit', '--until', '1h')).lines).toEqual(['no change and no command in this time']);
    expect((await ebb('audit')).lines[1]).toContain(`${me}?`);
    expect((await ebb('audit', '--since', 'monday')).stderr).toContain('--since: monday is neither a duration');
  });
});
