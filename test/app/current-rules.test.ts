import { expect, it } from 'vitest';
import { compileRules, withCurrentRules } from '../../src/app/rules.ts';
import { aSchedule, compiled } from '../support/builders.ts';

function rulesOf(revision: string) {
  const { set } = compiled(aSchedule());
  return compileRules({ policies: set, disruption: {}, manualChanges: undefined, profiles: new Map(), revision });
}

it('all rules are replaced in one assignment, and a copy keeps those it was made with', () => {
  const rules = { current: rulesOf('before') };
  const before = rules.current;
  const parts = withCurrentRules(rules, { mode: 'observe' });
  const copy = { ...parts };
  rules.current = rulesOf('after');
  expect(parts).toMatchObject({ mode: 'observe', ...rules.current });
  expect(copy).toMatchObject({ mode: 'observe', ...before });
});
