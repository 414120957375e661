/** The leader fixes, half an hour before windows with `ready: true` open, in which waves their computes become ready. */
import { limitsBesideLists, readyOpenings, readyWaves } from '../../domain/evaluate/ready-waves.ts';
import { type ReadyWaves, waveInstants } from '../../domain/policy/waves.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Overrides } from '../overrides.ts';
import type { CurrentRules } from '../rules.ts';
import { openReadyWaves, withAdded } from '../stored-waves.ts';

/** Interval between checks, in real milliseconds. */
const CHECK_EVERY_MS = 10_000;

/** Longer than the longest lead of a wave, and the time in which its projects are read. Milliseconds. */
const FIXED_BEFORE_MS = 30 * 60_000;

/** Longest wait for a fleet that can't be read completely, in real milliseconds. */
const LONGEST_WAIT_MS = 600_000;

export interface ReadyRoundsDeps {
  clock: Clock;
  rules: CurrentRules;
  fleet: Pick<Fleet, 'projectIds' | 'cachedProject' | 'known' | 'evaluatedComputes'>;
  overrides: Pick<Overrides, 'holds'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
  runInBackground: RunInBackground;
  /** Of each account. */
  limits: RateLimits;
}

export function startReadyRounds(deps: ReadyRoundsDeps): Running {
  const { clock, rules, fleet, overrides, store, leaderLease } = deps;
  let waitsSinceMs: number | undefined;
  /** By which policies which instants raise nothing: that is decided once, not each round for half an hour. */
  let raisingNothing: string | undefined;

  /** Waves of a part of the fleet would be too small for all of it. */
  function mustWait(): boolean {
    if (isEvaluated(fleet)) {
      waitsSinceMs = undefined;
      return false;
    }
    waitsSinceMs ??= clock.monotonicMs();
    return clock.monotonicMs() - waitsSinceMs < LONGEST_WAIT_MS;
  }

  async function round(): Promise<void> {
    if (!leaderLease.isHeld()) return;
    const { policies } = rules.current;
    const nowMs = clock.now();
    const near = readyOpenings(policies, nowMs, nowMs + FIXED_BEFORE_MS);
    if (near.length === 0) return;
    // A store that came back empty takes nothing away.
    const kept = await openReadyWaves(store);
    const before = kept.value ?? policies.readyWaves;
    const { hash } = policies.set;
    const openings = near.filter((opensAtMs) => !before.some((waves) => isFixed(waves, { opensAtMs, hash, nowMs })));
    const asked = `${hash} ${openings}`;
    if (openings.length === 0 || asked === raisingNothing || mustWait()) return;
    const evaluated = [...fleet.evaluatedComputes()];
    const herd = evaluated.map(({ compute, record: { baseline, trials } }) => ({
      ...{ compute, baseline, trials, holds: overrides.holds },
    }));
    const computes = evaluated.map(({ compute }) => compute);
    const added = readyWaves({ policies, herd, limitsOf: limitsBesideLists(deps.limits, computes) }, openings);
    if (added.length === 0) raisingNothing = asked;
    // Another daemon that leads by now decides itself.
    if (added.length === 0 || !(await kept.replace(withAdded(before, added, nowMs)))) return;
    for (const waves of added) logWaves(deps, waves);
  }

  return clock.every(CHECK_EVERY_MS, () => deps.runInBackground('ready_waves', round));
}

/** Changed policies have other waves, unless a daemon has already begun by the known ones. */
function isFixed(
  waves: ReadyWaves,
  { opensAtMs, hash, nowMs }: { opensAtMs: number; hash: string; nowMs: number },
): boolean {
  return waves.opensAtMs === opensAtMs && (waves.setHash === hash || beginsAtMs(waves) <= nowMs);
}

function beginsAtMs(waves: Pick<ReadyWaves, 'opensAtMs' | 'waves'>): number {
  return waveInstants(waves)[0] ?? waves.opensAtMs;
}

function isEvaluated(fleet: ReadyRoundsDeps['fleet']): boolean {
  return fleet.projectIds().every((projectId) => {
    const computes = fleet.cachedProject(projectId)?.computes;
    return computes?.every(({ computeId }) => fleet.known(computeId) !== undefined) === true;
  });
}

function logWaves({ telemetry: { log } }: ReadyRoundsDeps, { account, opensAtMs, waves }: ReadyWaves): void {
  const computes = waves.reduce((sum, wave) => sum + wave.computes, 0);
  const [opensAt, begins] = [isoInstant(opensAtMs), isoInstant(beginsAtMs({ opensAtMs, waves }))];
  const fields = {
    ...{ event: 'ebb.ready_waves', account, opens_at: opensAt, computes },
    waves: waves.map((wave) => ({ lead_s: wave.leadMs / 1000, computes: wave.computes })),
  };
  log.info(fields, `${computes} computes become ready for ${opensAt} in ${waves.length} waves, the first at ${begins}`);
}
