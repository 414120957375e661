/** Builds the command once for a whole run of the tests, in a folder of the run's own: what is started is what is shipped. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The built `main.js`. */
    ebbMain: string;
  }
}

export default function setup(project: TestProject): () => void {
  // Beside dist/, since the command finds its package.json and policies from there.
  const folder = `${project.config.root}/.build-${process.pid}`;
  const compiler = `${project.config.root}/node_modules/typescript-7/bin/tsc`;
  // Types are checked before the tests; an error of types somewhere must not keep tests of something else from running.
  spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', folder], { stdio: 'inherit' });
  if (!existsSync(`${folder}/cli/main.js`)) throw new Error('the command could not be built');
  for (const path of ['adapters/http/page/assets', 'policy/calendars/holiday-library.cjs']) {
    cpSync(`${project.config.root}/src/${path}`, `${folder}/${path}`, { recursive: true });
  }
  project.provide('ebbMain', `${folder}/cli/main.js`);
  return () => rmSync(folder, { recursive: true, force: true });
}
