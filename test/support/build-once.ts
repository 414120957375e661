/** Builds the command once for a whole run of the tests, in a folder of the run's own: what is started is what is shipped. */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The built `main.js`. */
    ebbMain: string;
  }
}

export default function setup(project: TestProject): () => void {
  // Beside dist/, since the command finds its package.json and policies from there.
  const folder = `.build-${process.pid}`;
  const { root } = project.config;
  execFileSync(process.execPath, ['scripts/build.mjs', '--out', folder], { cwd: root, stdio: 'inherit' });
  project.provide('ebbMain', `${root}/${folder}/cli/main.js`);
  return () => rmSync(`${root}/${folder}`, { recursive: true, force: true });
}
