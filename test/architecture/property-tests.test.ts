import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import config from '../../vitest.config.ts';
import mutationConfig from '../../vitest.mutation.config.ts';
import { boundsOf } from '../support/property-bound.ts';

const SETUP = 'test/support/file-setup.ts';
/** What would take the bound away again, or go around it. */
const UNBOUND =
  /\b(configureGlobal|resetConfigureGlobal|installGlobalPlugin|interruptAfterTimeLimit|skipAllAfterTimeLimit|fc\.sample|fc\.statistics|fc\.check)\b|\bplugins:/;
const MAY = new Set(['test/support/property-bound.ts', 'test/architecture/property-tests.test.ts']);
/** Where a property may be: what vitest runs with the setup, and what that imports. The other one changes how mutation testing runs them. */
const MAY_IMPORT = /^(test\/|scripts\/mutation-runner\.mjs$)/;

describe('property tests', () => {
  it('are bounded by the setup of every vitest configuration', () => {
    for (const { test } of [config, mutationConfig]) expect(test?.setupFiles).toEqual([SETUP]);
  });

  it('change the bound nowhere, and draw nothing outside of it', async () => {
    const texts = await sources();
    const drawing = texts.filter(({ text }) => /['"]fast-check['"]/.test(text)).map(({ file }) => file);
    expect(drawing.filter((file) => !MAY_IMPORT.test(file))).toEqual([]);
    const tests = texts.filter(({ file }) => file.startsWith('test/') && !MAY.has(file));
    expect(tests.filter(({ text }) => UNBOUND.test(text)).map(({ file }) => file)).toEqual([]);
    const asserting = tests.filter(({ text }) => text.includes('fc.assert('));
    expect(asserting.length).toBeGreaterThan(15);
    // By one name: what is searched for above can't hide behind another.
    expect(asserting.filter(({ text }) => !text.includes("import fc from 'fast-check';"))).toEqual([]);
    expect(tests.filter(({ text }) => /import (?!fc from)[^;]*['"]fast-check['"]/.test(text))).toEqual([]);
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

async function sources(): Promise<{ file: string; text: string }[]> {
  const folders = ['src', 'test', 'bench', 'scripts'];
  const listed = folders.map(async (folder) =>
    (await readdir(folder, { recursive: true })).map((file) => join(folder, file)),
  );
  const files = (await Promise.all(listed)).flat().filter((file) => /\.m?ts$|\.mjs$/.test(file));
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(file, 'utf8') })));
}
