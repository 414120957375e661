import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build-once.ts'],
    testTimeout: 60_000,
    hookTimeout: 90_000,
    // Real processes on a machine that somebody else uses too: what fails for that alone passes the second time.
    retry: process.env.CI ? 2 : 0,
    // Most of the time goes into waiting for processes, so even a machine of two cores takes two files at a time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Concurrent cases spend their time waiting for leases that run out.
    maxConcurrency: 12,
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'lcov'] },
  },
});
