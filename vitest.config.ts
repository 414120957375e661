import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Folders whose tests start the built command, a cluster of engines, a browser or the type checker: minutes, not seconds. */
const PROCESS_FOLDERS = ['cli', 'deploy', 'docs', 'e2e', 'engine', 'fault', 'scenario', 'typed'];
const processTests = PROCESS_FOLDERS.map((folder) => `test/${folder}/**/*.test.ts`);

/** A long run of the properties, EBB_PROPERTY_SECONDS=3600, has the time for it. */
const testTimeout = 60_000 + 1000 * Number(process.env.EBB_PROPERTY_SECONDS ?? 0);

/** For several waits on a busy machine. */
const withTime = { testTimeout: 240_000, hookTimeout: 240_000 };

/** The command is built once for a run; a project without it can't start processes, and so stays fast. */
const withBuild = { globalSetup: ['test/support/build-once.ts'], ...withTime };

/** These spend two thirds of their time waiting: for the end of a lease, a boundary, an operation. */
const manyAtOnce = { maxWorkers: 2 * availableParallelism(), sequence: { groupOrder: 1 } };

/** Files that take one to four minutes. Begun last, each would keep one worker busy while the others have nothing to do. */
const LONG_FILES = [
  ...['cli/readings', 'fault/empty-store', 'fault/said-at-a-boundary', 'fault/two-policy-sets', 'docs/day-2'],
  ...['docs/tutorial', 'e2e/readiness', 'e2e/restore-confirmed', 'e2e/failures', 'e2e/costs-agree', 'e2e/headroom'],
  ...['e2e/status-page', 'e2e/branches', 'e2e/guards', 'deploy/stack'],
].map((file) => `test/${file}.test.ts`);
for (const file of LONG_FILES)
  if (!existsSync(new URL(file, import.meta.url))) throw new Error(`LONG_FILES of vitest.config.ts: no ${file}`);

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG_FILES.some((file) => moduleId.endsWith(`/${file}`));
    return (await super.sort(files)).toSorted((a, b) => Number(isLong(b)) - Number(isLong(a)));
  }
}

export default defineConfig({
  test: {
    setupFiles: ['test/support/file-setup.ts'],
    // A worker imports a module once, not once for each file: this halves the time of unit tests, and saves a tenth of that of process tests.
    isolate: false,
    sequence: { sequencer: LongFilesFirst },
    // Real processes on a machine that somebody else uses too: what fails for that alone passes the second time.
    retry: process.env.CI ? 2 : 0,
    // A third of the time is spent waiting for servers, leases and processes, so two cores take three files at a time.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    // Concurrent cases spend their time waiting for leases that run out; but each starts daemons, which take a core for a second.
    maxConcurrency: 6,
    // What takes a moment may take many times as long on a busy machine; no longer than a test may.
    expect: { poll: { timeout: 50_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...processTests, 'test/package/**', 'test/smoke/**'],
          testTimeout,
          hookTimeout: 90_000,
        },
      },
      { extends: true, test: { name: 'smoke', include: ['test/smoke/**/*.test.ts'], ...withBuild } },
      { extends: true, test: { name: 'process', include: processTests, ...withBuild, ...manyAtOnce } },
      {
        extends: true,
        test: {
          ...{ name: 'package', include: ['test/package/**/*.test.ts'], globalSetup: ['test/support/pack-once.ts'] },
          ...{ ...withTime, ...manyAtOnce },
        },
      },
    ],
  },
});
