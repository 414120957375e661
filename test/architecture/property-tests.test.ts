import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import config from '../../vitest.config.ts';
import mutationConfig from '../../vitest.mutation.config.ts';
import { boundsOf } from '../support/property-bound.ts';

const SETUP = 'test/support/property-setup.ts';
/** What would take the bound away again, or go around it. */
const UNBOUND = /\b(configureGlobal|resetConfigureGlobal|installGlobalPlugin|interruptAfterTimeLimit|fc\.sample)\(/;
const MAY = new Set(['support/property-bound.ts', 'house/property-tests.test.ts']);

describe('property tests', () => {
  it('are bounded by the setup of every vitest configuration', () => {
    for (const { test } of [config, mutationConfig]) expect(test?.setupFiles).toEqual([SETUP]);
  });

  it('change the bound nowhere, and draw nothing outside of it', async () => {
    const files = (await readdir('test', { recursive: true })).filter((file) => file.endsWith('.ts') && !MAY.has(file));
    const texts = await Promise.all(
      files.map(async (file) => ({ file, text: await readFile(join('test', file), 'utf8') })),
    );
    expect(texts.filter(({ text }) => UNBOUND.test(text)).map(({ file }) => file)).toEqual([]);
    expect(texts.filter(({ text }) => text.includes('fc.assert(')).length).toBeGreaterThan(15);
  });

  it('stop at the bound, pass, and tell how far they came', () => {
    const told: string[] = [];
    const plugins = boundsOf({
      ...{ limitMs: 500, runLimitMs: 600_000 },
      tell: (line) => told.push(line),
      nameOf: () => 'numbers',
    });
    const result = fc.check(
      fc.property(fc.nat(), () => true),
      { numRuns: 1_000_000_000, plugins },
    );
    expect(result).toMatchObject({ failed: false, interrupted: true });
    expect(told).toEqual([
      expect.stringMatching(/^stopped after \d+ of 1000000000 runs \(0\.5 s, seed -?\d+\): numbers$/),
    ]);
  });

  it('fail as ever before the bound', () => {
    const plugins = boundsOf({ limitMs: 60_000, runLimitMs: 600_000, tell: () => {}, nameOf: () => '' });
    expect(
      fc.check(
        fc.property(fc.nat(), () => false),
        { plugins },
      ).failed,
    ).toBe(true);
  });

  it('end the process where a single run never comes back, and name it', async () => {
    const script = `
      import fc from 'fast-check';
      import { boundProperties } from './test/support/property-bound.ts';
      boundProperties({ limitMs: 1000, runLimitMs: 200, tell: console.error, nameOf: () => 'for ever' });
      fc.assert(fc.property(fc.nat(), () => { for (;;); }));`;
    const ended = await new Promise<{ signal: unknown; stderr: string }>((resolve) => {
      const args = ['--import', 'tsx', '--input-type=module', '--eval', script];
      execFile(process.execPath, args, { timeout: 50_000 }, (error, _stdout, stderr) =>
        resolve({ signal: error?.signal, stderr }),
      );
    });
    expect(ended).toEqual({ signal: 'SIGKILL', stderr: 'a single run took longer than 0.2 s: for ever\n' });
  });
});
