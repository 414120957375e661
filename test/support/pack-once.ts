/** Packs the package once for a whole run of the tests: it builds dist/ again, and two at a time would do that under each other. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The package as npm would publish it. */
    ebbTarball: string;
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-package-'));
  const options = { cwd: project.config.root, encoding: 'utf8' } as const;
  const name = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], options).trim();
  project.provide('ebbTarball', join(folder, name));
  return () => rmSync(folder, { recursive: true, force: true });
}
