import { delimiter } from 'node:path';

/** Splits a list of files, folders and globs at commas and at the system's path separator, but not inside `{a,b}`. */
export function splitPolicyPaths(text: string): string[] {
  const separators = new RegExp(`[,${delimiter}](?![^{]*\\})`);
  return text
    .split(separators)
    .map((path) => path.trim())
    .filter((path) => path !== '');
}
