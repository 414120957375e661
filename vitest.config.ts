import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build-once.ts'],
    testTimeout: 60_000,
    hookTimeout: 90_000,
    // Real processes on a machine that somebody else uses too: what fails for that alone passes the second time.
    retry: process.env.CI ? 2 : 0,
    // Concurrent cases spend their time waiting for leases that run out.
    maxConcurrency: 12,
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'lcov'] },
  },
});
