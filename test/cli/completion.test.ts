/** Completion in the shells themselves: what each offers where a person presses Tab. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { startEbb } from '../support/ebb-process.ts';
import { listenLocally } from '../support/local-server.ts';
import { makeFolder } from '../support/platform.ts';
import { programPath } from '../support/programs.ts';
import { describeWith } from '../support/requirements.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
/** Where no daemon is. */
const NOBODY = '127.0.0.1:1';
/** What `ebb init` has written, and an id that a shell would run. */
const BASELINE = JSON.stringify({
  computes: ['ep-shop', 'ep-shed', 'ep-web', '$(touch ran)'].map((id) => ({ compute_id: id })),
});

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  folder = await makeFolder({
    ...{ 'team policies.yaml': '', 'fleet.yaml': '', 'baseline.json': BASELINE },
    ebb: `#!/bin/sh\nEBB_LISTEN=${NOBODY} exec '${process.execPath}' '${inject('ebbMain')}' "$@"\n`,
  });
  chmodSync(join(folder.path, 'ebb'), 0o755);
  const write = async (shell: string) => {
    const made = startEbb(['completion', shell]);
    expect(await made.ended).toBe(0);
    writeFileSync(join(folder.path, `.ebb.${shell}`), `${made.lines.join('\n')}\n`);
  };
  await Promise.all(SHELLS.map(write));
});
afterAll(() => folder?.remove());

function run(shell: string, args: readonly string[], input = ''): string {
  const env = { PATH: `${folder.path}:${process.env.PATH}`, HOME: folder.path, TERM: 'dumb', LC_ALL: 'C.UTF-8' };
  const { stdout, stderr } = spawnSync(shell, args, {
    cwd: folder.path,
    env,
    input,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  return stdout;
}

/** Lines of a person up to the cursor, and what must be offered; the words of each line, as bash breaks them. */
const OFFERED: [string[], string[]][] = [
  [['va'], ['validate']],
  [['plan', '--mo'], ['--mode']],
  [
    ['plan', '--mode', ''],
    ['enforce', 'observe'],
  ],
  [['--verbose', 'diff', '--format', 'm'], ['markdown']],
  [['keys', ''], ['create']],
  [['keys', 'create', '--acc'], ['--account']],
  [['completion', 'f'], ['fish']],
  [
    ['explain', 'ep-sh'],
    ['ep-shop', 'ep-shed'],
  ],
  [['release', 'ep-w'], ['ep-web']],
];

describe('ebb completion', () => {
  it('refuses another shell in one line', async () => {
    const process = startEbb(['completion', 'tcsh']);
    expect(await process.ended).toBe(1);
    expect(process.stderr()).toMatch(
      /^ebb: .*Allowed choices are bash, zsh, fish, computes; see ebb completion --help\n$/,
    );
  });
});

describe('ids of computes', () => {
  const ids = async (env: Record<string, string>, cwd = folder.path) => {
    const asked = startEbb(['completion', 'computes'], { cwd, env: { EBB_LISTEN: NOBODY, ...env } });
    expect([await asked.ended, asked.stderr()]).toEqual([0, '']);
    return asked.lines;
  };

  it('are those of baseline.json that no shell could run, and none where nobody knows any', async () => {
    expect(await ids({})).toEqual(['ep-shop', 'ep-shed', 'ep-web']);
    expect(await ids({ EBB_MODE: 'nonsense' })).toEqual(['ep-shop', 'ep-shed', 'ep-web']);
    expect(await ids({}, tmpdir())).toEqual([]);
    run('bash', ['--noprofile', '--norc', '-c', '. ./.ebb.bash; COMP_WORDS=(ebb hold "") COMP_CWORD=2; _ebb']);
    expect(existsSync(join(folder.path, 'ran'))).toBe(false);
  });

  it('are those of the daemon on this machine, which is sent no token of the settings', async () => {
    const asked: { url: string | undefined; authorization: string | undefined }[] = [];
    const server = createServer(({ url, headers }, response) => {
      asked.push({ url, authorization: headers.authorization });
      response.end(JSON.stringify({ computes: [{ compute_id: 'ep-live' }], next: null }));
    });
    const { port, close } = await listenLocally(server);
    onTestFinished(close);
    expect(await ids({ EBB_LISTEN: `127.0.0.1:${port}`, EBB_TOKEN: 'a-token-of-the-settings' })).toEqual(['ep-live']);
    expect(asked).toEqual([{ url: '/api/v1/computes?limit=1000', authorization: undefined }]);
  });
});

describe('in bash', () => {
  const offers = (words: readonly string[]) => {
    const line = ['ebb', ...words].map((word) => `'${word}'`).join(' ');
    const script = `. ./.ebb.bash; COMP_WORDS=(${line}) COMP_CWORD=${words.length}; _ebb; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run('bash', ['--noprofile', '--norc', '-u', '-c', script])
      .split('\n')
      .filter((word) => word !== '');
  };

  it.each(OFFERED)('%j gives %j', (words, offered) => {
    expect(offers(words).toSorted()).toEqual(offered.toSorted());
  });

  it('offers every command, a value after "=", and leaves paths to readline', () => {
    expect(offers([''])).toEqual(COMMANDS.map(({ name }) => name));
    expect(offers(['plan', '--mode', '=', 'o'])).toEqual(['observe']);
    expect(offers(['plan', '--mode', '='])).toEqual(['enforce', 'observe']);
    expect(offers(['validate', 't'])).toEqual([]);
    expect(run('bash', ['-c', '. ./.ebb.bash; complete -p ebb'])).toBe('complete -o default -F _ebb ebb\n');
  });
});

describeWith('fish', 'in fish', () => {
  const offers = (line: string) => {
    const told = run(programPath('fish'), ['--no-config', '-c', `source .ebb.fish; complete -C '${line}'`]);
    return told.split('\n').flatMap((one) => one.split('\t')[0] || []);
  };

  it.each(OFFERED)('%j gives %j', (words, offered) => {
    expect(offers(`ebb ${words.join(' ')}`).toSorted()).toEqual(offered.toSorted());
  });

  it('offers every command, and paths where there may be some', () => {
    expect(offers('ebb ').toSorted()).toEqual(COMMANDS.map(({ name }) => name).toSorted());
    expect(offers('ebb validate te')).toEqual(['team policies.yaml']);
    expect(offers('ebb plan --fleet fl')).toEqual(['fleet.yaml']);
    expect(offers('ebb explain fl')).toEqual([]);
  });
});

describeWith('zsh', 'in zsh', () => {
  /** What an interactive zsh makes of lines when Tab is pressed at their ends: each is printed instead of run. */
  const completed = (lines: readonly string[]) => {
    const typed = lines.map((line) => `zpty -w -n z $'${line}\\t\\x01print -r -- "DONE [\\x05]"\\r'; await DONE`);
    // The line editor is ready once it has switched bracketed paste on.
    const script = String.raw`
      zmodload zsh/zpty
      await() {
        local told
        zpty -r z told "*$1 \[*"$'\e'"\[\?2004h"
        print -r -- $told
      }
      zpty z "TERM=dumb zsh -f -i"
      zpty -w z "autoload -Uz compinit; compinit -u -D; bindkey -e; . ./.ebb.zsh; print -r -- READY [x]"
      await READY
      ${typed.join('\n')}`;
    const told = run(programPath('zsh'), ['-f'], script);
    return [...told.matchAll(/^DONE \[(.*)\]\r?$/gm)].map(([, line]) => line?.trimEnd());
  };

  it('completes commands, flags, values and paths', () => {
    const lines = ['ebb va', 'ebb plan --mode en', 'ebb --verbose diff --format m', 'ebb keys cr', 'ebb validate te'];
    expect(completed([...lines, 'ebb plan --fl', 'ebb explain fl', 'ebb hold ep-w'])).toEqual([
      'ebb validate',
      'ebb plan --mode enforce',
      'ebb --verbose diff --format markdown',
      'ebb keys create',
      'ebb validate team\\ policies.yaml',
      'ebb plan --fleet',
      'ebb explain fl',
      'ebb hold ep-web',
    ]);
  });
});
