import { execFileSync } from 'node:child_process';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { endServer, onFreePort, startServer } from './child-server.ts';
import { programPath } from './programs.ts';

export interface PostgresServer {
  url: string;
  port: number;
  /** Ends it at once; what was written stays for `start`. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  /** Ends it and removes its data. */
  close(): Promise<void>;
}

/** A real Postgres on a free port, with its data in a temporary folder. It refuses to run as root, so it runs as `postgres` then. */
export async function startPostgresServer(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-postgres-'));
  const owner = process.getuid?.() === 0 ? ownerOf('postgres') : undefined;
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const program = programPath('postgres');
  const data = join(folder, 'data');
  const initdb = join(dirname(program), 'initdb');
  execFileSync(initdb, ['-D', data, '-U', 'ebb', '-A', 'trust', '-N'], { ...owner, stdio: 'ignore' });
  const settings = ['-D', data, '-h', '127.0.0.1', '-k', folder, '-F'];
  const run = (on: number) =>
    startServer(program, [...settings, '-p', `${on}`], /ready to accept connections/, { ...owner, cwd: folder });
  const { port, started } = await onFreePort(run);
  let child = started;
  return {
    url: `postgres://ebb@127.0.0.1:${port}/postgres`,
    port,
    // SIGQUIT ends the server's own processes too, without tidying up.
    kill: () => endServer(child, 'SIGQUIT'),
    start: async () => {
      child = await run(port);
    },
    close: async () => {
      await endServer(child, 'SIGQUIT');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export function ownerOf(user: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
