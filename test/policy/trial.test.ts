import { describe, expect, it } from 'vitest';
import type { TrialPolicy } from '../../src/domain/policy/kinds/trial.ts';
import { changedTrials } from '../../src/domain/policy/policy-set.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { aCompute, at } from '../support/builders.ts';
import { file, lintsIn, schedule } from './lint-text.ts';

const OTHERS = [
  schedule('office-hours', 'windows: [{ at: Mon, size: 1 }]'),
  schedule('looking', 'mode: observe, windows: [{ at: Mon, size: 1 }]'),
  schedule('off', 'enabled: false, windows: [{ at: Mon, size: 1 }]'),
  'name: soft, kind: limits, select: { projects: ["*"] }, size: { max: 4 }',
  'name: hard, kind: limits, hard: true, select: { projects: ["*"] }, size: { max: 4 }',
  'name: year-end, kind: freeze, select: { projects: ["*"] }, at: Mon',
];
const KEYS = { of: '[office-hours, soft]', control: '25%', from: '2027-01-11', until: '2027-03-08' };
const trial = (changes: Record<string, string> = {}, name = 'proof') => {
  const keys = { name, kind: 'trial', select: '{ projects: ["web-*"] }', ...KEYS, ...changes };
  return Object.entries(keys)
    .map(([key, value]) => `${key}: ${value}`)
    .join(', ');
};
const parse = (...policies: string[]) => parsePolicyFiles([{ path: 'web.yaml', text: file(...OTHERS, ...policies) }]);
const problems = (changes: Record<string, string>) => {
  const parsed = parse(trial(changes));
  return parsed.ok
    ? []
    : parsed.problems.map(({ line, excerpt, message }) => {
        const place = excerpt?.text.slice(excerpt.from, excerpt.from + excerpt.length);
        return `${line} «${place}» ${message}`;
      });
};
const trialOf = (changes: Record<string, string> = {}): TrialPolicy => {
  const parsed = parse(trial(changes));
  const found = parsed.ok ? parsed.set.policies.find(({ name }) => name === 'proof') : undefined;
  if (found?.kind !== 'trial') throw new Error(problems(changes).join());
  return found;
};

describe('the text of a trial', () => {
  it('is what it says, in the zone of the file', () => {
    expect(trialOf({ rotate: '14d', unit: 'branch', seed: 'x', until: '2027-05-03' })).toMatchObject({
      of: ['office-hours', 'soft'],
      unit: 'branch',
      design: {
        ...{ seed: 'x', oneOf: 4, rotateDays: 14, periods: 8, zone: 'Europe/Berlin' },
        fromDay: at('2027-01-11T00:00:00Z') / 86_400_000,
      },
    });
    expect(trialOf({ stop_if: '{ cost: $200.50 }' })).toMatchObject({
      stopIf: { costUsd: 200.5 },
      digest: trialOf().digest,
    });
    expect(trialOf()).toMatchObject({ unit: 'project', design: { seed: '', oneOf: 4, rotateDays: 7, periods: 8 } });
  });

  it.each<[string, Record<string, string>, string]>([
    ['a cost', { stop_if: '{ cost: 200 }' }, '10 «200» expected dollars such as "$200"'],
    ['a cost of nothing', { stop_if: '{ cost: $0 }' }, '10 «$0» expected dollars such as "$200"'],
    ['a share', { control: '40%' }, '10 «40%» expected one of 50%, 33%, 25%, 20%, 10%; did you mean "50%"?'],
    ['a period', { rotate: '8d' }, '10 «8d» expected one of 7d, 14d, 28d; did you mean "7d"?'],
    [
      'a day that is none',
      { from: '2027-02-30' },
      '10 «2027-02-30» expected a date such as "2027-01-11", on which the trial begins',
    ],
    [
      'half a rotation',
      { until: '2027-02-22' },
      '10 «2027-02-22» is 42 days after from; with 25% and 7d a rotation takes 28 days, so write 2027-03-08',
    ],
    [
      'an end before its beginning',
      { until: '2027-01-01' },
      '10 «2027-01-01» is -10 days after from; with 25% and 7d a rotation takes 28 days, so write 2027-02-08',
    ],
    [
      'an unknown policy',
      { of: '[offce-hours]' },
      '10 «offce-hours» no policy is named "offce-hours"; did you mean "office-hours"?',
    ],
    [
      'one that is far from any',
      { of: '[xyz]' },
      '10 «xyz» no policy is named "xyz"; there are office-hours, looking, soft, hard',
    ],
    ['the same twice', { of: '[soft, soft]' }, '10 «soft» "soft" is named twice; leave one out'],
    ['one that is not enabled', { of: '[off]' }, '10 «off» "off" is not enabled; leave it out'],
    [
      'a freeze',
      { of: '[year-end]' },
      '10 «year-end» "year-end" is of kind freeze; a trial withdraws schedules and soft limits only',
    ],
    [
      'itself',
      { of: '[proof]' },
      '10 «proof» "proof" is of kind trial; a trial withdraws schedules and soft limits only',
    ],
    ['a hard limit', { of: '[hard]' }, '10 «hard» "hard" is a hard limit, which always holds; leave it out'],
    [
      'one that observes',
      { of: '[looking]' },
      '10 «looking» "looking" only observes, so it can\'t be withdrawn; leave it out or let it enforce',
    ],
    [
      'a part of projects',
      { select: '{ projects: ["*"], computes: ["ep-*"], branches: ["main"] }' },
      '10 «projects» a trial with unit: project selects whole projects; leave out computes, branches',
    ],
    [
      'a part of branches',
      { unit: 'branch', select: '{ branches: ["main"], share: 10% }' },
      '10 «branches» a trial with unit: branch selects whole branches; leave out share',
    ],
  ])('is told of %s', (_what, changes, problem) => {
    expect(problems(changes)).toEqual([problem]);
  });
});

it('a set with only a trial is refused: there is nothing to withdraw', () => {
  const parsed = parsePolicyFiles([{ path: 'web.yaml', text: file(trial()) }]);
  const messages = parsed.ok ? [] : parsed.problems.map(({ message }) => message);
  expect(messages[0]).toBe('no policy is named "office-hours"; there is none that sets anything');
});

it.each([
  ['in its file', (broken: string, rest: string[]) => [file(broken, ...rest)]],
  ['in another file', (broken: string, rest: string[]) => [file(broken), file(...rest)]],
])(
  'is told of what it cannot withdraw beside a mistake %s, but not of names that the mistake may hide',
  (_, filesOf) => {
    const broken = schedule('nights', 'windows: [{ at: Mon, size: 99 }]');
    const files = filesOf(broken, [...OTHERS, trial({ of: '[nights, nigths, hard, looking]' })]);
    const parsed = parsePolicyFiles(files.map((text, index) => ({ path: `${index}.yaml`, text })));
    expect(parsed.ok ? [] : parsed.problems.map(({ message }) => message)).toEqual([
      '99 CU is not a size; the nearest is 56',
      '"hard" is a hard limit, which always holds; leave it out',
      '"looking" only observes, so it can\'t be withdrawn; leave it out or let it enforce',
    ]);
  },
);

describe('a trial that has begun', () => {
  const begun = at('2027-01-10T23:00:00Z');
  it.each<[Record<string, string>]>([
    [{ seed: 'b' }],
    [{ control: '50%' }],
    [{ unit: 'branch' }],
    [{ rotate: '14d' }],
    [{ from: '2026-12-14' }],
    [{ of: '[soft]' }],
  ])('is not loaded with %o', (change) => {
    const [before, after] = [[trialOf()], [trialOf(change)]];
    expect(changedTrials(before, after, begun)).toEqual([
      'trial proof has begun, so seed, control, unit, rotate, from, zone and of cannot be changed any more: give the new one another name',
    ]);
    expect(changedTrials(before, after, begun - 1)).toEqual([]);
  });

  it('may go on for longer, end, or be written in another way', () => {
    const next = trialOf({ until: '2027-05-03', of: '[soft, office-hours]' });
    expect(changedTrials([trialOf()], [next], begun)).toEqual([]);
    expect(changedTrials([trialOf()], [], begun)).toEqual([]);
  });
});

describe('two trials', () => {
  const two = (changes: Record<string, string>) => file(...OTHERS, trial(), trial(changes, 'again'));
  const message =
    'also in the trial "proof" (web.yaml:10) at the same time, and a unit counts in one trial only: select apart, or let one begin when the other is over';

  it('of the same units at the same time are found, for certain where a compute is known', () => {
    const found = (changes: Record<string, string>, fleet?: ReturnType<typeof aCompute>[]) =>
      lintsIn(two(changes), fleet && { fleet }).filter((line) => line.includes('two-trials'));
    expect(found({ select: '{ projects: ["*"] }' })).toEqual([
      `11 «projects» warning two-trials units may be ${message}`,
    ]);
    expect(found({ select: '{ projects: ["*"] }' }, [aCompute()])).toEqual([
      `11 «projects» error two-trials computes such as ep-one are ${message}`,
    ]);
    expect(found({ select: '{ projects: ["dev-*"] }' })).toEqual([]);
    expect(found({ from: '2027-03-08', until: '2027-05-03' })).toEqual([]);
  });
});
