import { describe, expect, it } from 'vitest';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { formatProblem } from '../../src/policy/problem.ts';

function read(keys: string, receivers: readonly { name: string }[] = [{ name: 'dev-team' }, { name: 'ops' }]) {
  const policy = `{ name: p, kind: limits, select: { projects: [a] }, size: { max: 4 }, ${keys} }`;
  const result = parsePolicyFiles([{ path: 'a.yaml', text: `version: 1\npolicies:\n  - ${policy}\n` }], { receivers });
  if (result.ok) return { policy: result.set.policies[0], problems: [] };
  return { problems: result.problems.map(({ excerpt: _excerpt, ...problem }) => formatProblem(problem)) };
}

describe('receivers of a policy', () => {
  it('are kept with how long before they are told', () => {
    expect(read('notify: [dev-team], notify_before: 15m').policy).toMatchObject({
      notify: ['dev-team'],
      notifyBeforeMs: 900_000,
    });
    expect(read('priority: 1').policy).not.toHaveProperty('notify');
  });

  it('must be defined in the settings', () => {
    expect(read('notify: [dev-taem]').problems).toEqual([
      'a.yaml:3:84: no receiver is named "dev-taem"; did you mean "dev-team"?',
    ]);
    expect(read('notify: [finance]').problems).toEqual([
      'a.yaml:3:84: no receiver is named "finance"; there are dev-team, ops',
    ]);
    expect(read('notify: [finance]', []).problems).toEqual([
      'a.yaml:3:84: no receiver is named "finance"; "notify" of ebb.yaml has none',
    ]);
  });
});
