import { seededRandom } from '../../src/domain/random.ts';

export interface Dice {
  uniform(): number;
  normal(): number;
  /** With variance 1, as {@link normal}. */
  t4(): number;
}

/** Numbers that a seed decides. */
export function diceFrom(seed: number): Dice {
  const uniform = seededRandom(seed);
  // Box and Muller.
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  const t4 = () => {
    const squares = Array.from({ length: 4 }, normal).reduce((sum, value) => sum + value ** 2, 0);
    return normal() / Math.sqrt(squares / 4) / Math.SQRT2;
  };
  return { uniform, normal, t4 };
}
