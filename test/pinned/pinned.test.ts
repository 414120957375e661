/** What ebb says of one fleet under policies of every kind, word for word: what no change may change by accident. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';

const CORPUS = 'test/pinned/corpus';
const FLEET = ['--fleet', `${CORPUS}/fleet.yaml`];
const POLICIES = ['--policies', `${CORPUS}/policies.yaml`];
const INSTANTS = ['2026-03-02T08:00:00+01:00', '2026-03-06T21:00:00+01:00', '2026-03-08T04:30:00+01:00'];
const COMPUTES = ['ep-shop-main', 'ep-shop-replica', 'ep-shop-pr-1', 'ep-blog', 'ep-ann', 'ep-ann-new', 'ep-etl-large'];
const SPANS = { days: ['2026-03-01', '2026-03-10'], clocks: ['2026-03-27', '2026-03-31'] };

let printed: string[];

beforeEach(() => {
  printed = [];
  vi.stubEnv('EBB_QUEUE_URL', 'embedded:test/pinned/no-such-folder');
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

async function outputOf(...args: string[]): Promise<string> {
  await runProgram(args);
  return printed.join('');
}

describe('a fleet under policies of every kind', () => {
  it.each(INSTANTS)('is planned at %s as it always was', async (at) => {
    const json = await outputOf('plan', ...FLEET, ...POLICIES, '--at', at, '--json');
    await expect(json).toMatchFileSnapshot(`expected/plan-${at.slice(0, 10)}.json`);
  });

  it.each(COMPUTES)('explains %s as it always did', async (compute) => {
    const json = await outputOf('explain', compute, ...FLEET, ...POLICIES, '--at', INSTANTS[0] ?? '', '--json');
    await expect(json).toMatchFileSnapshot(`expected/explain-${compute}.json`);
  });

  it.each(Object.entries(SPANS))('is foreseen for %s as it always was', async (name, [from = '', to = '']) => {
    const json = await outputOf('forecast', ...FLEET, ...POLICIES, '--from', from, '--to', to, '--json');
    await expect(json).toMatchFileSnapshot(`expected/forecast-${name}.json`);
  });

  it('differs from what it was under other policies as it always did', async () => {
    const span = ['--from', '2026-03-01', '--days', '9'];
    const json = await outputOf(
      'diff',
      `${CORPUS}/before.yaml`,
      `${CORPUS}/policies.yaml`,
      ...FLEET,
      ...span,
      '--json',
    );
    await expect(json).toMatchFileSnapshot('expected/diff.json');
  });
});
