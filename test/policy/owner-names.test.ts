import { describe, expect, it } from 'vitest';
import { misspeltOwners, unknownOwners } from '../../src/policy/owner-names.ts';

const NAMES = {
  file: 'ebb.yaml',
  owners: [['web-*', 'team-web'] as const, ['legacy', 'finance'] as const],
  receivers: [{ name: 'everyone' }],
  teams: [{ name: 'team-web' }],
  policies: [{ owner: 'data' }, {}],
};

describe('an owner that a receiver names', () => {
  const messages = (...owners: string[]) =>
    unknownOwners({ ...NAMES, receivers: [{ name: 'dev', owners }] }).map(({ message }) => message);

  it('is a team, the owner of a policy file, a label under owners, or nobody', () => {
    expect(messages('team-web', 'data', 'finance', 'unowned')).toEqual([]);
    expect(unknownOwners(NAMES)).toEqual([]);
  });

  it('is otherwise a problem that says what is nearest', () => {
    expect(messages('team-wbe', 'sales')).toEqual([
      'notify.dev.owners: no owner is named "team-wbe"; did you mean "team-web"?',
      'notify.dev.owners: no owner is named "sales"; there are team-web, data, finance, unowned',
    ]);
  });
});

describe('a label under owners', () => {
  const messages = (owner: string) =>
    misspeltOwners({ ...NAMES, owners: [['web-*', owner]] }).map(({ message }) => message);

  it.each(['team-we', 'team-webb', 'tema-web', 'dat'])(
    'that is one letter from a known one is a warning: %s',
    (owner) => {
      expect(messages(owner)).toEqual([
        expect.stringMatching(
          /^owners\."web-\*": no team or policy file has the owner ".*"; did you mean "(team-web|data)"\?$/,
        ),
      ]);
    },
  );

  it.each(['team-web', 'data', 'finance', 'team-tools'])('that is known, or far from any, is not: %s', (owner) => {
    expect(messages(owner)).toEqual([]);
  });
});
