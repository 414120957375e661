/**
 * The bootstrap (Efron 1979) over whole days, which depend little on each other: tests whether a gain would also result from other days
 * of the same kind.
 */
import { seededRandom } from '../random.ts';

/** The number of resamples, and how many of them may be without a gain: 5 %. */
const RESAMPLES = 1_000;
const MAX_LOSSES = 50;
const SEED = 1;

/**
 * True if there is a gain in 95 % of {@link RESAMPLES}. Each one draws as many days as there are, with replacement, and passes the sum
 * of each figure to `gainOf`. All days have the same figures. Stops as soon as the answer is certain.
 */
export function isSureGain(days: readonly ArrayLike<number>[], gainOf: (sums: Float64Array) => number): boolean {
  const dayCount = days.length;
  const figures = Array.from(days[0] ?? [], (_, place) => new Float64Array(days.map((day) => day[place] ?? 0)));
  const times = timesDrawn(dayCount);
  const sums = new Float64Array(figures.length);
  let losses = 0;
  for (let sample = 0; sample < RESAMPLES && losses <= MAX_LOSSES; sample += 1) {
    for (const [place, byDay] of figures.entries()) {
      let sum = 0;
      for (let day = 0; day < dayCount; day += 1) {
        sum += (times[sample * dayCount + day] as number) * (byDay[day] as number);
      }
      sums[place] = sum;
    }
    if (!(gainOf(sums) > 0)) losses += 1;
  }
  return losses <= MAX_LOSSES;
}

let drawnCache = { days: 0, times: new Uint16Array() };

/** How often each day is drawn, for one resample after the other. Cached, since it is the same for all computes. */
function timesDrawn(days: number): Uint16Array {
  if (drawnCache.days === days) return drawnCache.times;
  const times = new Uint16Array(RESAMPLES * days);
  const random = seededRandom(SEED);
  for (let draw = 0; draw < times.length; draw += 1) {
    const place = draw - (draw % days) + Math.floor(random() * days);
    times[place] = (times[place] as number) + 1;
  }
  drawnCache = { days, times };
  return times;
}
