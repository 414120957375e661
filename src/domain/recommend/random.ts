import { seededRandom } from '../random.ts';

/** How often values are drawn again. */
const RESAMPLES = 1_000;

/** What a figure would be if other days of the same kind had come. */
export interface Resampled {
  /** The part of the resamples in which it is above 0. */
  positiveShare: number;
  /** Its standard deviation. */
  deviation: number;
}

/** Draws as many days as there are, with replacement, {@link RESAMPLES} times: the bootstrap by blocks of days. */
export function resample<T>(days: readonly T[], seed: number, figureOf: (drawn: readonly T[]) => number): Resampled {
  const random = seededRandom(seed);
  let [positive, total, squares] = [0, 0, 0];
  for (let sample = 0; sample < RESAMPLES; sample += 1) {
    const figure = figureOf(days.map(() => days[Math.floor(random() * days.length)] as T));
    if (figure > 0) positive += 1;
    total += figure;
    squares += figure * figure;
  }
  const mean = total / RESAMPLES;
  return { positiveShare: positive / RESAMPLES, deviation: Math.sqrt(Math.max(0, squares / RESAMPLES - mean * mean)) };
}

/** The same for a sum of values by day. */
export function resampleDays(byDay: readonly number[], seed: number): Resampled {
  return resample(byDay, seed, (drawn) => drawn.reduce((sum, value) => sum + value, 0));
}
