import { basename, dirname, relative, resolve } from 'node:path';
import { isDynamicPattern } from 'tinyglobby';
import { isWithin } from '../policy/find-files.ts';

/**
 * Creates a function that shortens the paths in a text about settings and policies, since teams read such texts, and don't know this machine.
 * Paths below the folder of the settings file become relative to it. Others begin with the name of the policies folder.
 */
export function pathShortener(options: {
  /** Absolute. */
  configFile: string;
  /** Paths and globs of the policies. */
  paths: readonly string[];
  cwd: string;
}): (text: string) => string {
  const { paths, cwd } = options;
  const settingsFolder = dirname(options.configFile);
  const isBelowRoot = !isRoot(settingsFolder);
  const folders = [...new Set(paths.map((path) => literalPart(resolve(cwd, path))))]
    .filter((folder) => !(isBelowRoot && isWithin(settingsFolder, folder)))
    .toSorted((a, b) => a.length - b.length);
  const prefixes = [
    ...(isBelowRoot ? prefixesOf(settingsFolder, cwd) : []),
    ...folders.flatMap((folder) =>
      prefixesOf(dirname(folder), cwd).map((prefix) => `${prefix}(?=${escaped(basename(folder))})`),
    ),
  ];
  const pattern = new RegExp(`(?<![^\\s"'(])(?:${prefixes.join('|')})`, 'g');
  return (text) => text.replaceAll(pattern, '');
}

/** The part of a path before its first glob. */
function literalPart(path: string): string {
  const segments = path.split('/');
  const glob = segments.findIndex((segment) => isDynamicPattern(segment));
  return glob === -1 ? path : segments.slice(0, glob).join('/');
}

/** Patterns of a folder in messages: its absolute path and, for a folder below the working folder, its path relative to the working folder. */
function prefixesOf(folder: string, cwd: string): string[] {
  const below = relative(cwd, folder);
  const isBelow = below !== '' && !below.startsWith('..');
  return [isRoot(folder) ? '/' : `${folder}/`, ...(isBelow ? [`${below}/`] : [])].map(escaped);
}

const isRoot = (folder: string) => dirname(folder) === folder;

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
