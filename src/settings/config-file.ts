import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';

const DEFAULT_FILE = 'ebb.yaml';

export interface ConfigFile {
  /** The name as given; undefined if there is no file. */
  file: string | undefined;
  values: Record<string, unknown>;
  /** `FILE:LINE:COLUMN` of each key, and of each entry of a list, by its path: `mode`, `accounts.0`, `accounts.0.name`. */
  places: Map<string, string>;
  problems: string[];
}

/** The absolute path of the settings file, even if it does not exist. */
export function configFilePath({ cwd, named }: { cwd: string; named: string | undefined }): string {
  return resolve(cwd, named ?? DEFAULT_FILE);
}

/** Reads the named file, which must exist. Without a name, reads `ebb.yaml` in `cwd` if that file exists. */
export function readConfigFile({ cwd, named }: { cwd: string; named: string | undefined }): ConfigFile {
  if (named === undefined && !existsSync(resolve(cwd, DEFAULT_FILE))) return emptyConfig(undefined);
  const file = named ?? DEFAULT_FILE;
  try {
    return parseConfig(file, readFileSync(resolve(cwd, file), 'utf8'));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return {
      ...emptyConfig(file),
      problems: [`${file}: cannot be read (${code}); check the path and its permissions`],
    };
  }
}

function parseConfig(file: string, source: string): ConfigFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, prettyErrors: false });
  const place = (offset: number): string => {
    const { line, col } = lineCounter.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const problems = document.errors.map((error) => `${place(error.pos[0])}: ${firstLine(error.message)}`);
  if (problems.length > 0 || document.contents === null) return { ...emptyConfig(file), problems };
  if (!isMap(document.contents)) {
    return { ...emptyConfig(file), problems: [`${file}:1:1: must be a list of settings, one "name: value" a line`] };
  }
  const offsets = [...offsetsIn(document.contents, '')];
  const places = new Map(offsets.map(([path, offset]) => [path, place(offset)]));
  return { file, values: document.toJS(), places, problems };
}

/** The offset of each key and each list entry, by path. */
function* offsetsIn(node: unknown, parent: string): Generator<[path: string, offset: number]> {
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      if (!isScalar(key) || !key.range) continue;
      yield [`${parent}${key.value}`, key.range[0]];
      yield* offsetsIn(value, `${parent}${key.value}.`);
    }
  }
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      if (isNode(item) && item.range) yield [`${parent}${index}`, item.range[0]];
      yield* offsetsIn(item, `${parent}${index}.`);
    }
  }
}

function emptyConfig(file: string | undefined): ConfigFile {
  return { file, values: {}, places: new Map(), problems: [] };
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text;
}
