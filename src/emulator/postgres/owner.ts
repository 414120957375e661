import { readFileSync } from 'node:fs';

/** Who the servers run as. */
export interface Owner {
  uid: number;
  gid: number;
}

/** Users that may own a server if the emulator runs as root, since Postgres refuses to run as root. */
const USERS = ['postgres', 'nobody'];

/** Undefined: as the emulator itself. */
export function serverOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const found = USERS.map((name) => users.find(([user]) => user === name)).find((user) => user !== undefined);
  return found === undefined ? undefined : { uid: Number(found[2]), gid: Number(found[3]) };
}
