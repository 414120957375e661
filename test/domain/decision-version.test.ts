import { describe, expect, it } from 'vitest';
import { CONNECTION_PROFILES, tableProfile } from '../../src/domain/connections/connection-profile.ts';
import { type DecisionSettings, decisionHash } from '../../src/domain/evaluate/decision-version.ts';

const SETTINGS: DecisionSettings = {
  disruption: {},
  manualChanges: undefined,
  profiles: new Map(),
  verified: new Map(),
};
const hashOf = (settings: Partial<DecisionSettings>) => decisionHash('set', { ...SETTINGS, ...settings });
const withTable = (limit: number) =>
  new Map([['default', tableProfile({ name: 'table', byCu: new Map([[1, limit]]), reserved: 0 })]]);

describe('the decision hash', () => {
  it.each<[string, Partial<DecisionSettings>]>([
    ['disruption', { disruption: { atOnce: 0.5 } }],
    ['nested disruption', { disruption: { raise: { when: 'idle', atDeadline: 'apply' } } }],
    ['manual changes', { manualChanges: { kind: 'revert' } }],
    ['profiles', { profiles: new Map([['default', CONNECTION_PROFILES['vendor-2026']]]) }],
    ['timeouts that restart', { verified: new Map([['a', { timeout_change: 'restarts' }]]) }],
    ['a table of connections', { profiles: withTable(200) }],
  ])('is another one for other settings: %s', (_what, settings) => {
    expect(hashOf(settings)).not.toBe(hashOf({}));
    expect(hashOf(settings)).toBe(hashOf({ ...settings }));
  });

  it('tells tables of connections apart by what they give', () => {
    expect(hashOf({ profiles: withTable(200) })).not.toBe(hashOf({ profiles: withTable(300) }));
    expect(hashOf({ profiles: withTable(200) })).toBe(hashOf({ profiles: withTable(200) }));
  });

  it('is another one for other policies and another version of the engine', () => {
    const hashes = [
      decisionHash('set', SETTINGS, 1),
      decisionHash('set', SETTINGS, 2),
      decisionHash('tes', SETTINGS, 1),
    ];
    expect(new Set(hashes).size).toBe(3);
  });

  it('does not depend on the order of keys or accounts, nor on a default that is written down', () => {
    const { specification, 'vendor-2026': vendor } = CONNECTION_PROFILES;
    const accounts = [
      ['a', specification],
      ['b', vendor],
    ] as const;
    expect(hashOf({ profiles: new Map(accounts) })).toBe(hashOf({ profiles: new Map(accounts.toReversed()) }));
    expect(hashOf({ disruption: { atOnce: 0.5, quietBelow: 9 } })).toBe(
      hashOf({ disruption: { quietBelow: 9, atOnce: 0.5 } }),
    );
    expect(hashOf({ verified: new Map([['a', { timeout_change: 'stays', limits: 'told' }]]) })).toBe(hashOf({}));
    expect(hashOf({ disruption: { cooldownMs: 600_000 }, manualChanges: { kind: 'respect' } })).toBe(hashOf({}));
  });
});
