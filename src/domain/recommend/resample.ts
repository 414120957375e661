/** What would be if other days of the same kind had come: the bootstrap (Efron 1979), of whole days, since a day depends little on the one before. */
import { seededRandom } from '../random.ts';

/** How often days are drawn again; and in how many of these resamples at most nothing may be gained: 5 %. */
const RESAMPLES = 1_000;
const MOST_LOSSES = 50;
const SEED = 1;

/**
 * Whether something is gained in 95 % of {@link RESAMPLES}: draws as many days as there are, with replacement, and gives `gainOf` the sum of
 * each figure over them. All days have the same figures. Ends as soon as nothing can change the answer.
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

/**
 * How often each of so many days is drawn: for one resample after the other as many numbers as there are days. The same for all computes, so it is
 * kept for the next.
 */
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
