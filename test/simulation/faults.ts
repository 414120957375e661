/** Faults that ebb once had, as edits of its source that put them back: how many of them does the simulation find, not told where? */

export interface KnownFault {
  name: string;
  file: string;
  from: string;
  to: string;
}

export const KNOWN_FAULTS: readonly KnownFault[] = [
  {
    name: 'an intent is stored without comparing holds, freezes and the policy set',
    file: 'src/app/apply/apply.ts',
    from: 'return { intended, outcome: await deps.store.putIntent(projectId, computeId, intended, lease, given) };',
    to: "void given; return { intended, outcome: (await deps.store.putRecord(projectId, computeId, intended, lease)) ? 'stored' : 'lease_lost' };",
  },
  {
    name: 'a decision is written though the policies were replaced',
    file: 'src/app/reconcile/reconcile.ts',
    from: 'const decidedBy = { overrides: overrides.revision, generation: deps.generation() ?? NO_GENERATION };',
    to: "void NO_GENERATION; const decidedBy = { overrides: overrides.revision, generation: 'any' as const };",
  },
  {
    name: 'a reading that lags is taken for a change by a person',
    file: 'src/domain/records/lag.ts',
    from: 'const LAG_MS = 60_000;',
    to: 'const LAG_MS = 0;',
  },
  {
    name: 'one reading makes a baseline',
    file: 'src/domain/plan/manual-changes.ts',
    from: 'BASELINE_CONFIRMED_MS = 30_000;',
    to: 'BASELINE_CONFIRMED_MS = 0;',
  },
  {
    name: 'a file that is being written counts after a second',
    file: 'src/app/rollout/delayed-reading.ts',
    from: 'export const DELAY_MS = 10_000;',
    to: 'export const DELAY_MS = 1_200;',
  },
  {
    name: 'what a clock that was ahead has stored is believed',
    file: 'src/app/group/stored-times.ts',
    from: 'correcting: (store) => ({',
    to: 'correcting: (store) => store ?? ({',
  },
  {
    name: 'a clock that is off writes',
    file: 'src/app/rollout/write-permission.ts',
    from: 'const offsetMs = await storeClock.tooFarOff();',
    to: 'const offsetMs = (await storeClock.tooFarOff()) && undefined;',
  },
  {
    name: 'a compute that is listed twice is read',
    file: 'src/adapters/control-api/accounts.ts',
    from: 'return twice(ids);',
    to: 'return ids.length < 0 ? twice(ids) : undefined;',
  },
  {
    name: 'a store that came back older decides which policies are the newest',
    file: 'src/app/rollout/generations.ts',
    from: 'if (!newest || !sets.isLossLogged) return stored;',
    to: 'if (newest || !sets.isLossLogged) return stored;',
  },
  {
    name: 'nobody takes over from a version that no daemon has any more',
    file: 'src/app/rollout/reload.ts',
    from: 'const ABANDONED_MS = 2 * RECOVERY.leaderLeaseMs;',
    to: 'const ABANDONED_MS = 2e6 * RECOVERY.leaderLeaseMs;',
  },
  {
    name: 'a request without an answer is sent again at once',
    file: 'src/domain/records/recovery-times.ts',
    from: 'answerGraceMs: 20_000,',
    to: 'answerGraceMs: 0,',
  },
  {
    name: 'a new name brings the policies of a team at once',
    file: 'src/domain/plan/gates/disruption.ts',
    from: 'if (!record?.renamed) return undefined;',
    to: 'if (record !== undefined || !record?.renamed) return undefined;',
  },
  {
    name: 'a project is forgotten at the first 404',
    file: 'src/app/fleet/inventory.ts',
    from: 'const FORGET_GONE_AFTER_MS = 10_000;',
    to: 'const FORGET_GONE_AFTER_MS = 0;',
  },
  {
    name: 'a daemon that starts notes agreement by rules that are not complete',
    file: 'src/app/reconcile/records.ts',
    from: "return mode === 'enforce' && generation() !== undefined;",
    to: "return mode === 'enforce' || generation() !== undefined;",
  },
  {
    name: 'a change that takes effect late is taken for a change by a person',
    file: 'src/domain/records/failures.ts',
    from: 'lastApplied: Object.assign({}, record.lastApplied, ...requested) };',
    to: 'lastApplied: Object.assign({}, record.lastApplied, ...requested.slice(0, 0)) };',
  },
  {
    name: 'a reading that lags confirms a write',
    file: 'src/domain/records/failures.ts',
    from: 'if (lagging.some((group) => fieldsOf(group, fields))) return record;',
    to: 'if (lagging.length > 9 && lagging.some((group) => fieldsOf(group, fields))) return record;',
  },
];
