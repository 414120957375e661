import { seededRandom } from '../random.ts';

/** How often values are drawn again. */
const RESAMPLES = 1_000;

/** What sums of values by day would be if other days of the same kind had come. */
export interface Resampled {
  /** The part of the resamples with a sum above 0. */
  positiveShare: number;
  /** The standard deviation of the sums. */
  deviation: number;
}

/** Draws as many days as there are, with replacement, {@link RESAMPLES} times: the bootstrap by blocks of days. */
export function resampleDays(byDay: readonly number[], seed: number): Resampled {
  const random = seededRandom(seed);
  let [positive, total, squares] = [0, 0, 0];
  for (let sample = 0; sample < RESAMPLES; sample += 1) {
    let sum = 0;
    for (let day = 0; day < byDay.length; day += 1) sum += byDay[Math.floor(random() * byDay.length)] ?? 0;
    if (sum > 0) positive += 1;
    total += sum;
    squares += sum * sum;
  }
  const mean = total / RESAMPLES;
  return { positiveShare: positive / RESAMPLES, deviation: Math.sqrt(Math.max(0, squares / RESAMPLES - mean * mean)) };
}
