import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { KNOWN_FAULTS } from './faults.ts';
import { mutantsOf, sampleOf, withHits } from './mutants.ts';
import { wanted } from './oracle.ts';
import { type Digests, digestsOf, RECORDED_SEEDS, readRecorded, unlikeRecorded } from './outcome.ts';
import { planOf, type SimPlan } from './plan.ts';
import { simulate } from './run.ts';
import { shrink } from './shrink.ts';

/** More are run by `npm run simulate`. */
const SEEDS = [2, 6, 9, 10, 13, 16];

describe('a simulation', () => {
  const reached = new Map<string, number>();

  it.each(SEEDS)('of seed %i breaks no rule, and has the outcome that is recorded', async (seed) => {
    const result = await simulate(planOf(seed));
    expect(result.violations.map(({ rule, what }) => `${rule}: ${what}`)).toEqual([]);
    expect(unlikeRecorded(await readRecorded(), new Map([[seed, digestsOf(result.outcome)]]))).toEqual([]);
    for (const [what, times] of result.reached) reached.set(what, (reached.get(what) ?? 0) + times);
  });

  it('checks what it should, in enough places', () => {
    const least = {
      'values checked': 20,
      'due write checked': 5,
      'hold checked': 1,
      'write restarts an awake compute': 2,
      'guarded lowering checked': 1,
      'unapproved set checked': 1,
      'knowledge checked': 20,
      'policy of a value checked': 5,
      'record checked': 100,
      'last change in a record checked': 5,
      'files in time checked': 20,
    };
    const seldom = Object.entries(least).filter(([what, times]) => (reached.get(what) ?? 0) < times);
    expect(seldom).toEqual([]);
  });

  it('of one seed has the same trace each time, byte for byte', async () => {
    const [first, second] = [await simulate(planOf(7)), await simulate(planOf(7))];
    expect(first.trace.length).toBeGreaterThan(100);
    expect(second.trace.join('\n')).toBe(first.trace.join('\n'));
  });

  it('has at least 30 actions of people and processes, and 10 troubles', () => {
    for (const seed of SEEDS) {
      const faults = planOf(seed).actions.filter((action) => action.do === 'fault');
      expect(faults.length).toBeGreaterThanOrEqual(10);
      expect(planOf(seed).actions.length - faults.length).toBeGreaterThanOrEqual(30);
    }
  });
});

it('an outcome that is not the recorded one is told by seed and aspects, with what to do', async () => {
  const recorded = await readRecorded();
  expect([...recorded.keys()]).toEqual(RECORDED_SEEDS);
  expect(unlikeRecorded(recorded, new Map([...recorded].slice(0, 9)))).toEqual([]);
  const seven = recorded.get(7) as Digests;
  const found = unlikeRecorded(
    recorded,
    new Map([
      [7, { ...seven, writes: 'other', log: 'other' }],
      [9_999, seven],
    ]),
  );
  expect(found[0]).toBe('seed 7 has another outcome than recorded: writes, log');
  expect(found.slice(1)).toEqual([expect.stringContaining('--seed 7 --outcome'), expect.stringContaining('--record')]);
});

describe('a known fault', () => {
  it.each(KNOWN_FAULTS)('can still be put back: $name', async ({ edits }) => {
    for (const { file, from } of edits) expect(await readFile(file, 'utf8')).toContain(from);
  });
});

it('a mutant changes one place of a source, of those that a rule may notice; a seed draws the same ones each time', () => {
  const text = "if (a < 3) log.info('no');\nelse tell(b && !c);\n";
  const mutants = mutantsOf('some.ts', text);
  const changed = mutants.map(({ from, to, after }) => text.slice(0, from) + after + text.slice(to));
  expect(changed).toContain("if (!(a < 3)) log.info('no');\nelse tell(b && !c);\n");
  expect(changed).toContain("if (a <= 3) log.info('no');\nelse tell(b && !c);\n");
  expect(changed).toContain("if (a < 3) log.info('no');\nelse ;\n");
  expect(changed).toContain("if (a < 3) log.info('no');\nelse tell(b || !c);\n");
  expect(new Set(changed).size).toBe(7);
  expect(sampleOf(mutants, 3, 7)).toEqual(sampleOf(mutants, 3, 7));
});

it('what mutants change is counted where it is reached, and left out where it only says something', () => {
  const text =
    "function f(a) {\n  if (a < 3) a = 5;\n  const what = a === 4 ? 'four of them' : 'others';\n  return a > 4 && true;\n}";
  const mutants = mutantsOf('some.ts', text).map((mutant, index) => ({ ...mutant, index }));
  const hits: number[] = [];
  const changed = new Function('hit', `${withHits(text, mutants)}\nreturn f(4);`);
  expect(changed((index: number) => void hits.push(index))).toBe(false);
  const reached = mutants.filter(({ index }) => hits.includes(index)).map(({ before }) => before);
  expect(reached).toEqual(['a < 3', '<', '<', '3', '&&', '>', '>', '4']);
  expect(mutants.map(({ before }) => before)).toContain('5');
});

describe('a broken rule', () => {
  it('is found, and its list of actions made short', async () => {
    const plan: SimPlan = { ...planOf(3), daemons: 0 };
    const { violations } = await simulate(plan);
    expect(violations.map(({ rule }) => rule)).toContain('daemons run');
    expect((await shrink(plan, 'daemons run')).actions).toEqual([]);
  }, 120_000);
});

describe('the oracle', () => {
  const baseline = { size: [1, 1] as const, suspendSeconds: 300 };
  const subject = { computeId: 'ep-1', projectName: 'web-shop', baseline };
  const schedule = {
    kind: 'schedule',
    name: 's',
    projects: ['*'],
    priority: 0,
    windows: [],
    otherwise: 'leave',
  } as const;
  const open = { fromMs: 0, toMs: 10 };

  it('takes an open window before an otherwise, then the higher priority, then the later one', () => {
    const platform = [
      { ...schedule, priority: 1, windows: [{ ...open, size: [2, 2] as const }] },
      {
        ...schedule,
        windows: [{ ...open, size: [4, 4] as const, suspendSeconds: 60 }],
        otherwise: { suspendSeconds: 600 },
      },
    ];
    const files = { platform, web: [] };
    expect(wanted(files, subject, [], 5)).toEqual({ size: [2, 2], suspendSeconds: 60, frozen: [] });
    expect(wanted(files, subject, [], 10)).toEqual({ size: null, suspendSeconds: 600, frozen: [] });
  });

  it('clamps to limits, lets a hold go beyond soft ones, and not beyond hard ones', () => {
    const limits = { kind: 'limits', name: 'l', projects: ['*'], maxCu: 1, hard: false } as const;
    const hold = {
      id: 'h',
      computeId: 'ep-1',
      createdAtMs: 0,
      expiresAtMs: 10,
      values: { size: [4, 4] as const },
      isFreeze: false,
    };
    const platform = [{ ...schedule, otherwise: { size: [2, 2] as const } }, limits];
    expect(wanted({ platform, web: [] }, subject, [], 5).size).toEqual([1, 1]);
    expect(wanted({ platform, web: [] }, subject, [hold], 5).size).toEqual([4, 4]);
    expect(
      wanted({ platform: [platform[0] as never, { ...limits, hard: true }], web: [] }, subject, [hold], 5).size,
    ).toEqual([1, 1]);
  });

  it('keeps the policies of a team within its scope', () => {
    const web = [{ ...schedule, otherwise: { size: [4, 4] as const } }];
    expect(wanted({ platform: [], web }, subject, [], 5).size).toEqual([4, 4]);
    expect(wanted({ platform: [], web }, { ...subject, projectName: 'api-core' }, [], 5).size).toBeNull();
  });
});
