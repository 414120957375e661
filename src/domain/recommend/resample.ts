/**
 * The bootstrap (Efron 1979) over whole days, since a day depends little on the one before: what would be if other days of the same kind
 * had come.
 */
import { seededRandom } from '../random.ts';

/** The number of resamples, and the most of them without a gain: 5 %. */
const RESAMPLES = 1_000;
const MOST_LOSSES = 50;
const SEED = 1;

/**
 * True if there is a gain in 95 % of {@link RESAMPLES}. Draws as many days as there are, with replacement, and passes the sum of each
 * figure to `gainOf`. All days have the same figures. Ends as soon as the answer is certain.
 */
export function isSureGain(days: readonly ArrayLike<number>[], gainOf: (sums: Float64Array) => number): boolean {
  const many = days.length;
  const figures = Array.from(days[0] ?? [], (_, place) => new Float64Array(days.map((day) => day[place] ?? 0)));
  const times = timesDrawn(many);
  const sums = new Float64Array(figures.length);
  let losses = 0;
  for (let sample = 0; sample < RESAMPLES && losses <= MOST_LOSSES; sample += 1) {
    for (const [place, byDay] of figures.entries()) {
      let sum = 0;
      for (let day = 0; day < many; day += 1) {
        sum += (times[sample * many + day] as number) * (byDay[day] as number);
      }
      sums[place] = sum;
    }
    if (!(gainOf(sums) > 0)) losses += 1;
  }
  return losses <= MOST_LOSSES;
}

let drawn = { days: 0, times: new Uint16Array() };

/** The number of times that each day is drawn, resample after resample. The same for all computes, so it is cached. */
function timesDrawn(days: number): Uint16Array {
  if (drawn.days === days) return drawn.times;
  const times = new Uint16Array(RESAMPLES * days);
  const random = seededRandom(SEED);
  for (let draw = 0; draw < times.length; draw += 1) {
    const place = draw - (draw % days) + Math.floor(random() * days);
    times[place] = (times[place] as number) + 1;
  }
  drawn = { days, times };
  return times;
}
