import { readFileSync } from 'node:fs';

/** The version in package.json, which lies two folders up from src/cli as from dist/cli. */
export function readVersion(): string {
  return readJson<{ version: string }>('../../package.json').version;
}

/** As `0.1.0 (abc1234)`, with the commit that the build has noted; from source there is none. */
export function versionText(): string {
  const commit = builtFrom();
  return commit === null ? readVersion() : `${readVersion()} (${commit})`;
}

function builtFrom(): string | null {
  try {
    return readJson<{ commit: string | null }>('../build.json').commit;
  } catch {
    return null;
  }
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
