/** Faults that ebb once had, as edits of its source that put them back: how many of them does the simulation find, not told where? */

export interface KnownFault {
  name: string;
  edits: readonly { file: string; from: string; to: string }[];
}

/** Without them nothing is known of writes that count as lost. */
const LATE_EFFECTS = {
  file: 'src/domain/records/failures.ts',
  from: 'const LATE_EFFECT_MS = 10 * MINUTE_MS;',
  to: 'const LATE_EFFECT_MS = 0;',
};

export const KNOWN_FAULTS: readonly KnownFault[] = [
  {
    name: 'an intent is stored whatever was said since the decision',
    edits: [
      {
        file: 'src/app/apply/apply.ts',
        from: 'lease, leaseOptions) };',
        to: "lease, { ...leaseOptions, decidedBy: { overrides: (await deps.store.overrides(atMs)).revision, generation: 'any' } }) };",
      },
    ],
  },
  {
    name: 'a decision is written though the policies were replaced',
    edits: [
      {
        file: 'src/app/reconcile/reconcile.ts',
        from: 'generation: deps.generation() ?? NO_GENERATION };',
        to: "generation: 'any' as const };",
      },
      { file: 'src/app/reconcile/reconcile.ts', from: "if (isReplaced()) return 'outdated';", to: '' },
    ],
  },
  {
    name: 'a reading that lags is taken for a change by a person, and makes a baseline',
    edits: [
      {
        file: 'src/domain/records/lag.ts',
        from: 'if (!applied || isFailed) return false;',
        to: 'if (true || !applied || isFailed) return false;',
      },
      {
        file: 'src/domain/plan/manual-changes.ts',
        from: 'BASELINE_CONFIRMED_MS = 30_000;',
        to: 'BASELINE_CONFIRMED_MS = 0;',
      },
    ],
  },
  {
    name: 'a file that is being written counts after a second',
    edits: [
      {
        file: 'src/app/rollout/delayed-reading.ts',
        from: 'export const DELAY_MS = 10_000;',
        to: 'export const DELAY_MS = 1_200;',
      },
    ],
  },
  {
    name: 'a clock that is off writes',
    edits: [
      {
        file: 'src/app/group/clock-skew.ts',
        from: 'if (last === undefined || Math.abs(',
        to: 'if (last === undefined || last !== undefined || Math.abs(',
      },
    ],
  },
  {
    name: 'a compute that is listed twice is read',
    edits: [
      {
        file: 'src/adapters/control-api/routes.ts',
        from: 'return repeatedId(ids);',
        to: 'return ids.length < 0 ? repeatedId(ids) : undefined;',
      },
    ],
  },
  {
    name: 'a store that came back older decides which policies are the newest',
    edits: [
      {
        file: 'src/app/rollout/generations.ts',
        from: 'if (!newest || !sets.isLossLogged) return stored;',
        to: 'if (newest || !sets.isLossLogged) return stored;',
      },
    ],
  },
  {
    name: 'nobody takes over from a version that no daemon has any more',
    edits: [
      {
        file: 'src/app/rollout/reload.ts',
        from: 'const ABANDONED_MS = 2 * RECOVERY.leaderLeaseMs;',
        to: 'const ABANDONED_MS = 2e6 * RECOVERY.leaderLeaseMs;',
      },
    ],
  },
  {
    name: 'a request without an answer is sent again at once',
    edits: [{ file: 'src/domain/records/recovery-times.ts', from: 'answerGraceMs: 20_000,', to: 'answerGraceMs: 0,' }],
  },
  {
    name: 'a new name brings the policies of a team at once',
    edits: [
      {
        file: 'src/domain/plan/gates/disruption.ts',
        from: 'if (!record?.renamed) return undefined;',
        to: 'if (record !== undefined || !record?.renamed) return undefined;',
      },
    ],
  },
  {
    name: 'a project is forgotten at the first 404',
    edits: [
      {
        file: 'src/app/fleet/inventory.ts',
        from: 'const FORGET_GONE_AFTER_MS = 10_000;',
        to: 'const FORGET_GONE_AFTER_MS = 0;',
      },
      {
        file: 'src/app/fleet/inventory.ts',
        from: 'const sinceMs = fleet.goneSinceMonotonicMs.get(projectId);',
        to: 'const sinceMs = fleet.goneSinceMonotonicMs.get(projectId) ?? 0;',
      },
    ],
  },
  {
    name: 'a daemon that starts notes agreement by rules that are not complete',
    edits: [
      {
        file: 'src/app/reconcile/records.ts',
        from: "return mode === 'enforce' && generation() !== undefined;",
        to: "return mode === 'enforce' || generation() !== undefined;",
      },
    ],
  },
  {
    name: 'a change that takes effect late after another one is taken for a change by a person',
    edits: [LATE_EFFECTS],
  },
  {
    name: 'a change that takes effect late is taken for a change by a person',
    edits: [
      LATE_EFFECTS,
      {
        file: 'src/domain/records/failures.ts',
        from: 'lastApplied: Object.assign({}, record.lastApplied, ...requested) };',
        to: 'lastApplied: Object.assign({}, record.lastApplied, ...requested.slice(0, 0)) };',
      },
    ],
  },
  {
    name: 'a reading from before its grace shows that a change is lost',
    edits: [
      {
        file: 'src/domain/records/failures.ts',
        from: 'if (Math.min(readAtMs, nowMs) < intent.atMs',
        to: 'if (nowMs < intent.atMs',
      },
      {
        file: 'src/app/reconcile/missing.ts',
        from: 'return graceEndMs <= nowMs ?',
        to: 'return graceEndMs < 0 ?',
      },
    ],
  },
  {
    name: 'a reading that lags confirms a write',
    edits: [
      {
        file: 'src/domain/records/failures.ts',
        from: 'if (lagging.some((group) => fieldsOf(group, fields))) return record;',
        to: 'if (lagging.length > 9 && lagging.some((group) => fieldsOf(group, fields))) return record;',
      },
    ],
  },
  {
    name: 'one refusal is believed for an hour',
    edits: [
      {
        file: 'src/domain/plan/gates/earlier-writes.ts',
        from: 'const REFUSED_RETRY_MS = 60_000;',
        to: 'const REFUSED_RETRY_MS = 3_600_000;',
      },
    ],
  },
  {
    name: 'a hold is lost with the store',
    edits: [
      {
        file: 'src/app/overrides.ts',
        from: 'expiresAtMs > nowMs && !storedIds',
        to: 'expiresAtMs > nowMs + 1e15 && !storedIds',
      },
    ],
  },
  {
    name: 'a hold that was released comes back',
    edits: [
      {
        file: 'src/app/overrides.ts',
        from: ' && !endedIds.has(id)',
        to: ' && (endedIds.size < 0 || !endedIds.has(id + id))',
      },
    ],
  },
  {
    name: 'a reading is newer than its age after the clock was set back',
    edits: [
      {
        file: 'src/app/fleet/fleet.ts',
        from: 'cached.readAtMs = Math.min(cached.readAtMs, clock',
        to: 'cached.readAtMs = Math.max(cached.readAtMs, clock',
      },
    ],
  },
  {
    name: 'names of projects are as old as the list of this daemon',
    edits: [
      {
        file: 'src/app/fleet/cached-projects.ts',
        from: 'if (nameUnknown) return false;',
        to: "if (nameUnknown || projectId !== '') return false;",
      },
    ],
  },
  {
    name: 'a reading that comes later than a newer one ends the respect for a manual change',
    edits: [
      {
        file: 'src/domain/plan/manual-changes.ts',
        from: 'if (updatedAtMs === undefined || updatedAtMs <=',
        to: 'if (updatedAtMs !== undefined || updatedAtMs === undefined || updatedAtMs <=',
      },
      {
        file: 'src/domain/records/lag.ts',
        from: 'isShown ? newestLagMs(record, group) :',
        to: 'isShown ? 0 :',
      },
    ],
  },
  {
    name: 'a hold that a clock set seconds ahead counts only from its instant on',
    edits: [{ file: 'src/domain/evaluate/evaluate.ts', from: 'holds: setByNow(holds, nowMs) };', to: 'holds };' }],
  },
  {
    name: 'holds look expired to a clock that is far ahead, and are forgotten',
    edits: [
      { file: 'src/app/overrides.ts', from: 'nowMs - ((await storeClock.excessiveOffsetMs()) ?? 0)', to: 'nowMs' },
    ],
  },
  {
    name: 'a daemon that starts takes half a file',
    edits: [
      {
        file: 'src/compose/run-daemon.ts',
        from: 'if (source) noteAges(',
        to: 'if (source && source === undefined) noteAges(',
      },
    ],
  },
];
