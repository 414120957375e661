import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Programs that some suites run for real, and what to install where they are missing. */
const REQUIREMENTS = {
  'redis-server': { install: 'apt-get install redis-server' },
  prometheus: { install: 'apt-get install prometheus' },
  promtool: { install: 'apt-get install prometheus' },
  faketime: { install: 'apt-get install faketime' },
  openssl: { install: 'apt-get install openssl' },
  'systemd-analyze': { install: 'apt-get install systemd' },
  chromium: { install: 'apt-get install chromium' },
  zsh: { install: 'apt-get install zsh' },
  script: { install: 'apt-get install bsdutils' },
  fish: { install: 'apt-get install fish' },
  postgres: { install: 'apt-get install postgresql' },
  pgbouncer: { install: 'apt-get install pgbouncer' },
} as const satisfies Record<string, { install: string }>;

export type Requirement = keyof typeof REQUIREMENTS;

/** The full path of a program: on the PATH, or where Debian keeps Postgres' own. */
export function findProgram(name: string): string | undefined {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...postgresFolders(),
    '/usr/sbin',
  ];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The full path of a program that must be there. */
export function programPath(requirement: Requirement): string {
  const path = findProgram(requirement);
  if (path === undefined) throw new Error(missing(requirement));
  return path;
}

/** What to install for a program that is not there. */
export function missing(requirement: Requirement): string {
  return `needs ${requirement}: ${REQUIREMENTS[requirement].install}`;
}

function postgresFolders(): string[] {
  const root = '/usr/lib/postgresql';
  try {
    return readdirSync(root).map((version) => join(root, version, 'bin'));
  } catch {
    return [];
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
