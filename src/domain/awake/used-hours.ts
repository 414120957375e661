import { sum } from '../sum.ts';
import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';

/** The minimum number of measured hours. */
const MIN_HOURS = 48;
/** A compute that is idle is at the level of its least used hours: in this share of them it does no work. */
const IDLE_SHARE = 0.1;
/** An hour above the idle level by more than this is used: at the minimum size, where the level is exact, and above it, where it sways. */
const [ABOVE_MINIMUM, ABOVE_LEVEL] = [1.01, 1.1];
/** Levels up to this factor of the minimum are at the minimum. */
const AT_MINIMUM = 1.03;
/** Recent hours count more: those of a week ago four fifths. */
const FADING_PER_HOUR = 0.8 ** (1 / 168);

export interface ComputeUse {
  /** The share of hours with work; absent where usage is the same in all hours: work that fits into the size does not show. */
  share?: number;
  /** The size of the compute without work, in CU. */
  idleCu: number;
  /** Memory does not keep it larger. */
  isAtMinimum: boolean;
}

/**
 * In which share of its hours a compute that stays awake works, by its usage above the level of idle hours: the minimum size, or more if
 * memory keeps it larger. Undefined with less than two days of usage.
 */
export function useWhileAwake({
  compute: { minCu },
  hours = [],
}: {
  compute: { minCu: number };
  hours?: readonly UsageBucket[];
}): ComputeUse | undefined {
  const sizes = hours.flatMap(({ startMs, seconds, cuSeconds }) => {
    const cu = (cuSeconds ?? 0) / seconds;
    // Less than the minimum: it was not awake.
    return seconds * 1000 === HOUR_MS && cuSeconds !== null && cu >= 0.98 * minCu ? [{ startMs, cu }] : [];
  });
  if (sizes.length < MIN_HOURS) return undefined;
  const sorted = new Float64Array(sizes.map(({ cu }) => cu)).sort();
  const levelCu = Math.max(minCu, sorted[Math.floor(IDLE_SHARE * sorted.length)] ?? minCu);
  const isAtMinimum = levelCu <= AT_MINIMUM * minCu;
  const limit = levelCu * (isAtMinimum ? ABOVE_MINIMUM : ABOVE_LEVEL);
  const idle = sizes.filter(({ cu }) => cu <= limit);
  const idleCu = sum(idle.map(({ cu }) => cu)) / idle.length;
  if (idle.length === sizes.length) return { idleCu, isAtMinimum };
  const lastMs = sizes.at(-1)?.startMs ?? 0;
  const weightOf = ({ startMs }: { startMs: number }) => FADING_PER_HOUR ** ((lastMs - startMs) / HOUR_MS);
  return { share: 1 - sum(idle.map(weightOf)) / sum(sizes.map(weightOf)), idleCu, isAtMinimum };
}
