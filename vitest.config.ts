import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build-once.ts'],
    testTimeout: 60_000,
    hookTimeout: 90_000,
    // Many suites wait for processes and leases more than they compute.
    maxWorkers: Math.max(4, availableParallelism()),
    // Concurrent cases spend their time waiting for leases that run out.
    maxConcurrency: 12,
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'lcov'] },
  },
});
