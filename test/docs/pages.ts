import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every page for readers. */
export const PAGES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  ...pagesIn('docs'),
  ...pagesIn('test'),
];

export function readPage(page: string): string {
  return readFileSync(page, 'utf8');
}

function pagesIn(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
    .toSorted();
}
