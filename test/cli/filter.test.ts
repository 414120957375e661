import { describe, expect, it } from 'vitest';
import { filtered, filtersByBranch } from '../../src/cli/filter.ts';
import { aCompute, aSchedule, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const all = ['web-eu', 'web-us', 'api-eu', 'x'].map((projectName) => ({
  compute: aCompute({ projectName, projectId: `p-${projectName}`, computeId: `ep-${projectName}` }),
}));
const policies = compiled(
  { ...aSchedule({ select: aSelector({ projects: ['web-*'] }) }), owner: 'team-web' },
  { ...aSchedule({ name: 'api', select: aSelector({ projects: ['api-*'] }) }), owner: 'team-api' },
);
const names = (flags: Parameters<typeof filtered>[1], owners: [string, string][] = []) =>
  filtered(all, flags, { settings: { owners }, policies }).map(({ compute }) => compute.projectName);

describe('--owner and --select', () => {
  it('ask for nothing in particular where they are not given', () => {
    expect(names({})).toEqual(['web-eu', 'web-us', 'api-eu', 'x']);
  });

  it('leave the computes of an owner, by the settings first, and those that a selector matches', () => {
    expect(names({ owner: 'team-web' })).toEqual(['web-eu', 'web-us']);
    expect(names({ owner: 'team-web', select: ['projects=*-eu'] })).toEqual(['web-eu']);
    expect(names({ owner: 'ann' }, [['web-us', 'ann']])).toEqual(['web-us']);
    expect(names({ owner: 'unowned' })).toEqual(['x']);
    expect(names({ select: ['projects=web-*,!web-us', 'types=read_write'] })).toEqual(['web-eu']);
  });

  it('name the owners that there are where nobody has the name', () => {
    expect(() => names({ owner: 'team-wbe' })).toThrow(
      '--owner: nothing belongs to team-wbe; owners are team-web, team-api, unowned',
    );
  });

  it('are refused where no compute is selected: an empty list would look as if all were well', () => {
    expect(() => names({ select: ['projects=nope-*'] })).toThrow(
      '--select: none of 4 computes matches projects=nope-*; check the globs',
    );
  });

  it('are refused beyond the limits of a selector, as over HTTP', () => {
    const stars = Array.from({ length: 200 }, (_, index) => `*a*${index}*`).join();
    expect(() => names({ select: [`projects=${stars}`] })).toThrow('--select: its globs take too long to match');
  });

  it.each([
    [['branches=main'], true],
    [['projects=web-*', 'branch_roles=default'], true],
    [['projects=main'], false],
    [undefined, false],
  ])('%j asks for branches: %s', (select, expected) => {
    expect(filtersByBranch({ ...(select && { select }) })).toBe(expected);
  });
});
