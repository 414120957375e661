/**
 * The leader fixes the waves in which computes become ready for windows with `ready: true`. It does so half an hour before the opening, or
 * earlier if the waves are announced earlier, since an announced change must not move.
 */
import { limitsForChanges, openingsWithoutWaves, readyWaves } from '../../domain/evaluate/ready-waves.ts';
import { longestLead } from '../../domain/notifications/coming-change.ts';
import { LONGEST_WAVE_LEAD_MS, type ReadyWaves, waveInstants } from '../../domain/policy/waves.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Overrides } from '../overrides.ts';
import type { CurrentRules } from '../rules.ts';
import { openReadyWaves, withNewWaves } from '../stored-waves.ts';

/** Interval between checks, in real milliseconds. */
const CHECK_EVERY_MS = 10_000;

/** How long before an opening its waves are fixed, in milliseconds: longer than the longest lead plus the reading of the projects. */
const FIX_LEAD_MS = 30 * MINUTE_MS;

/** Longest wait until the whole fleet is evaluated, in real milliseconds. */
const MAX_WAIT_MS = 600_000;

export interface ReadyRoundsDeps {
  clock: Clock;
  rules: CurrentRules;
  fleet: Pick<Fleet, 'projectIds' | 'cachedProject' | 'latestEvaluation' | 'evaluatedComputes'>;
  overrides: Pick<Overrides, 'holds'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
  runInBackground: RunInBackground;
  limits: RateLimits;
}

export function startReadyRounds(deps: ReadyRoundsDeps): Running {
  const { clock, rules, fleet, overrides, store, leaderLease } = deps;
  let waitsSinceMs: number | undefined;
  /** The policies and openings for which the last computation found that no waves are needed; it is not repeated for them. */
  let lastWithoutWaves: string | undefined;

  /** Returns true until the whole fleet is evaluated, at most for {@link MAX_WAIT_MS}: waves for a part of it would have too short leads. */
  function waitsForFleet(): boolean {
    if (isFleetEvaluated(fleet)) {
      waitsSinceMs = undefined;
      return false;
    }
    waitsSinceMs ??= clock.monotonicMs();
    return clock.monotonicMs() - waitsSinceMs < MAX_WAIT_MS;
  }

  async function round(): Promise<void> {
    if (!leaderLease.isHeld()) return;
    const { policies, verified, notify } = rules.current;
    const nowMs = clock.now();
    const announcedMs = longestLead(policies.set, notify.beforeMs) + LONGEST_WAVE_LEAD_MS + MINUTE_MS;
    const span = { nowMs, toMs: nowMs + Math.max(FIX_LEAD_MS, announcedMs) };
    if (openingsWithoutWaves(policies, [], span).length === 0) return;
    // A store that has lost its data has no waves: those that this daemon knows stay.
    const storedWaves = await openReadyWaves(store);
    const fixedWaves = storedWaves.value ?? policies.readyWaves;
    const openings = openingsWithoutWaves(policies, fixedWaves, span);
    const openingsKey = `${policies.set.hash} ${openings}`;
    if (openings.length === 0 || openingsKey === lastWithoutWaves || waitsForFleet()) return;
    const evaluated = [...fleet.evaluatedComputes()];
    const { holds } = overrides;
    const subjects = evaluated.map(({ compute, record }) => ({ compute, ...decidingFacts(record), holds }));
    const computes = evaluated.map(({ compute }) => compute);
    const limitsOf = limitsForChanges(deps.limits, computes);
    const added = readyWaves({ policies, subjects, verified, limitsOf }, openings);
    if (added.length === 0) lastWithoutWaves = openingsKey;
    // The replacement fails if another daemon has become the leader and fixed waves.
    if (added.length === 0 || !(await storedWaves.replace(withNewWaves(fixedWaves, added, nowMs)))) return;
    for (const waves of added) logWaves(deps, waves);
  }

  return clock.every(CHECK_EVERY_MS, () => deps.runInBackground('ready_waves', round));
}

function isFleetEvaluated(fleet: ReadyRoundsDeps['fleet']): boolean {
  return fleet.projectIds().every((projectId) => {
    const computes = fleet.cachedProject(projectId)?.computes;
    return computes?.every(({ computeId }) => fleet.latestEvaluation(computeId) !== undefined) === true;
  });
}

function logWaves({ telemetry: { log } }: ReadyRoundsDeps, { account, opensAtMs, waves }: ReadyWaves): void {
  const computes = waves.reduce((sum, wave) => sum + wave.computes, 0);
  const opensAt = isoInstant(opensAtMs);
  const begins = isoInstant(waveInstants({ opensAtMs, waves })[0] ?? opensAtMs);
  const fields = {
    event: 'ebb.ready_waves',
    account,
    opens_at: opensAt,
    computes,
    waves: waves.map((wave) => ({ lead_s: wave.leadMs / 1000, computes: wave.computes })),
  };
  log.info(fields, `${computes} computes become ready for ${opensAt} in ${waves.length} waves, the first at ${begins}`);
}
