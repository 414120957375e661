import { createColors } from 'picocolors';
import { describe, expect, it } from 'vitest';
import { stagedInReports } from '../../src/app/situation/staged-parts.ts';
import { describePlan } from '../../src/cli/plan/describe-plan.ts';
import { approvalsNeeded, withApprovals } from '../../src/cli/plan/staged.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import { NO_TEAM, teamPart } from '../../src/domain/policy/team-parts.ts';
import { aCompute, aSchedule, at, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const ofTeam = (team: string) =>
  aSchedule({ name: `${team}/hours`, team, select: aSelector({ projects: [`${team}-*`] }) });
const policies = compiled(ofTeam('web'), ofTeam('api'));
const TEAMS = ['web', 'api'].map((name) => ({ name, projects: [`${name}-*`] }));
const HASH = 'abcdef'.repeat(10);

const plan = planFleet({
  ...{ policies, mode: 'enforce', profiles: new Map(), records: new Map() },
  ...{ nowMs: at('2026-03-02T09:00:00Z'), disruption: undefined, manualChanges: undefined },
  computes: ['web-shop', 'web-blog', 'api-core'].map((name) =>
    aCompute({ projectId: name, projectName: name, computeId: `ep-${name}`, state: 'idle' }),
  ),
});

function shown(staged: { team: string; setHash: string | undefined }) {
  const parts = [{ ...staged, hash: HASH, message: 'it is staged' }];
  const approvals = approvalsNeeded(plan.computes, { staged: parts, policies: policies.set, teams: TEAMS });
  const lines = describePlan(withApprovals(plan, approvals), { colors: createColors(false), zone: 'UTC' }).split('\n');
  return { lines, ids: [...approvals].map(([{ compute }, hash]) => `${compute.computeId} ${hash}`) };
}

describe('a plan while policies are staged', () => {
  it('says which changes wait for the approval of a team, and counts the others only as changes of now', () => {
    const { lines, ids } = shown({ team: 'web', setHash: teamPart(policies.set, 'web').hash });
    expect(ids.toSorted()).toEqual([`ep-web-blog ${HASH}`, `ep-web-shop ${HASH}`]);
    expect(lines.at(-1)).toBe('1 to change now, 2 waiting (2 for ebb approve), 0 as wanted');
    const waiting = lines.slice(lines.indexOf('Waiting:'));
    expect(waiting.join('\n')).toContain('ep-web-shop');
    expect(waiting).toContain('      waits: the policy set is staged: ebb approve abcdefabcdef [staged]');
    expect(lines.slice(0, lines.indexOf('Waiting:')).join('\n')).not.toContain('web');
  });

  it('lets all wait for policies of no team', () => {
    const { lines } = shown({ team: NO_TEAM, setHash: teamPart(policies.set, NO_TEAM).hash });
    expect(lines.at(-1)).toBe('0 to change now, 3 waiting (3 for ebb approve), 0 as wanted');
  });

  it.each([
    ['other policies than those of the plan', 'f'.repeat(64)],
    ['policies that a daemon of an older version does not name', undefined],
  ])('says nothing of %s', (_name, setHash) => {
    const { lines, ids } = shown({ team: 'web', setHash });
    expect(ids).toEqual([]);
    expect(lines.at(-1)).toBe('3 to change now, 0 waiting, 0 as wanted');
  });
});

it('what several daemons of a group have staged is one part, and each report says of which policies', () => {
  const report = {
    staged: ['web waits', 'all waits'],
    staged_sets: [
      { hash: 'a', set_hash: 'a', owner: 'web', disconnected: 3 },
      { hash: 'b', set_hash: 'c', owner: '', disconnected: 9 },
    ],
  };
  // Each daemon counts the computes that it knows.
  const other = { ...report, staged: ['web waits: 19 computes', 'all waits'] };
  expect(stagedInReports([other, report])).toEqual([
    { team: 'web', hash: 'a', setHash: 'a', message: 'web waits' },
    { team: '', hash: 'b', setHash: 'c', message: 'all waits' },
  ]);
  expect(stagedInReports([{ staged: ['old'] }])).toEqual([
    { team: NO_TEAM, hash: '', setHash: undefined, message: 'old' },
  ]);
});
