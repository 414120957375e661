import { readFileSync } from 'node:fs';

/** The version in package.json, which lies two folders up from src/cli as from dist/cli. */
export function readVersion(): string {
  const ownPackage: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return ownPackage.version;
}
