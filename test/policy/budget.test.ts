import { describe, expect, it } from 'vitest';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { file } from './lint-text.ts';

const STEPS = '[{ at: 80% projected, notify: [dev] }, { at: 100% spent, limits: { size: { max: 1 } } }]';
const budget = (changes: Record<string, string> = {}) => {
  const keys = { name: 'dev', kind: 'budget', select: '{ projects: ["dev-*"] }', month: '2000 CUh', steps: STEPS };
  return Object.entries({ ...keys, ...changes })
    .map(([key, value]) => `${key}: ${value}`)
    .join(', ');
};
const parse = (changes: Record<string, string>) =>
  parsePolicyFiles([{ path: 'dev.yaml', text: file(budget(changes)) }], { receivers: [{ name: 'dev' }] });
const budgetOf = (changes: Record<string, string> = {}) => {
  const parsed = parse(changes);
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join());
  return parsed.set.policies[0];
};
const problems = (changes: Record<string, string>) => {
  const parsed = parse(changes);
  return parsed.ok
    ? []
    : parsed.problems.map(({ excerpt, message }) => {
        const place = excerpt?.text.slice(excerpt.from, excerpt.from + excerpt.length);
        return `«${place}» ${message}`;
      });
};

describe('the text of a budget', () => {
  it('is what it says, in the zone of the file', () => {
    expect(budgetOf()).toMatchObject({
      month: { unit: 'cu_hours', amount: 2000 },
      steps: [
        { at: 0.8, of: 'projected', notify: ['dev'] },
        { at: 1, of: 'spent', notify: [], limits: { size: { low: 0, high: 1 } } },
      ],
      includeProtected: false,
      zone: 'Europe/Berlin',
    });
    const both = '[{ at: 120% spent, disruption: { lower: { when: quiet } }, limits: { suspend_after: { max: 5m } } }]';
    expect(budgetOf({ month: '$400.50', steps: both, include_protected: 'true' })).toMatchObject({
      month: { unit: 'usd', amount: 400.5 },
      steps: [
        {
          ...{ at: 1.2, limits: { suspend_timeout: { low: 0, high: 300 } } },
          disruption: { lower: { when: 'quiet', atDeadline: 'apply' } },
        },
      ],
      includeProtected: true,
    });
  });

  it.each<[string, Record<string, string>, string]>([
    [
      'a month that is neither',
      { month: '2000' },
      '«2000» expected CU-hours such as "2000 CUh", or dollars such as "$400"',
    ],
    ['a month of nothing', { month: '$0' }, '«$0» expected CU-hours such as "2000 CUh", or dollars such as "$400"'],
    [
      'a basis that is none',
      { steps: '[{ at: 80% used, notify: [dev] }]' },
      '«80% used» expected a share of the month such as "80% projected" or "100% spent", up to 999%',
    ],
    [
      'steps that are not ascending',
      { steps: '[{ at: 90% spent, notify: [dev] }, { at: 80% projected, notify: [dev] }]' },
      '«80% projected» comes after the step 90% spent; write steps in ascending order, each once',
    ],
    [
      'a step that is there twice',
      { steps: '[{ at: 90% spent, notify: [dev] }, { at: 90% spent, notify: [dev] }]' },
      '«90% spent» comes after the step 90% spent; write steps in ascending order, each once',
    ],
    [
      'a later step that is looser',
      {
        steps:
          '[{ at: 80% spent, limits: { size: { max: 1 } } }, { at: 90% spent, notify: [dev] }, { at: 100% spent, limits: { suspend_after: { max: 5m } } }]',
      },
      '«suspend_after» is looser than the step 80% spent; a later step limits at least as much',
    ],
    ['a step that does nothing', { steps: '[{ at: 80% spent }]' }, '«at» does nothing: add notify, limits, or both'],
    [
      'limits that limit nothing',
      { steps: '[{ at: 80% spent, limits: {} }]' },
      '«{}» limits nothing: add size, suspend_after, or both',
    ],
    [
      'a selector of what is not measured',
      { select: '{ projects: ["dev-*"], computes: ["ep-*"] }' },
      '«projects» a budget selects by accounts, projects, branches and branch_roles, which are measured; leave out computes',
    ],
  ])('is refused with its place for %s', (_what, changes, problem) => {
    expect(problems(changes)).toEqual([problem]);
  });

  it('takes a projected and a spent step at the same share, the projected one first', () => {
    const at = (of: string) => `{ at: 100% ${of}, notify: [dev] }`;
    expect(problems({ steps: `[${at('projected')}, ${at('spent')}]` })).toEqual([]);
    expect(problems({ steps: `[${at('spent')}, ${at('projected')}]` })).toHaveLength(1);
  });

  it('names receivers that there are', () => {
    const steps = '[{ at: 80% projected, notify: [dev, ops] }]';
    expect(problems({ steps })).toEqual(['«ops» no receiver is named "ops"; there are dev']);
  });
});
