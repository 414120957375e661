import { defineConfig } from 'vitest/config';

/** The tests of the domain alone: they need no build, and mutation testing runs them thousands of times. */
export default defineConfig({
  test: {
    include: ['test/domain/**/*.test.ts'],
    setupFiles: ['test/support/file-setup.ts'],
    testTimeout: 60_000,
  },
});
