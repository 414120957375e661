import { createHash } from 'node:crypto';

const GROUP = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** What is wrong with a group's name, or undefined: it becomes part of keys and of a schema's name. */
export function groupProblem(group: string): string | undefined {
  if (GROUP.test(group)) return undefined;
  return `the group ${JSON.stringify(group)} is not usable: set EBB_GROUP to letters, digits, ".", "_" or "-", at most 100`;
}

/** The prefix of a group's keys on Redis; braces make a Cluster keep them together. */
export function redisPrefix(group: string): string {
  return `{ebb-${group}}`;
}

/** A schema name that is a plain identifier and different for different groups. */
export function postgresSchema(group: string): string {
  if (/^[a-z0-9_]{1,50}$/.test(group)) return `ebb_${group}`;
  const hash = createHash('sha256').update(group).digest('hex').slice(0, 10);
  const readable = group.toLowerCase().replaceAll(/[^a-z0-9]/g, '_');
  return `ebb_${readable.slice(0, 40)}_${hash}`;
}
