/** The 90 % quantile of the standard normal distribution. */
export const NORMAL_QUANTILE_90 = 1.2816;

/** The standard normal distribution function, accurate to 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
export function normal(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  const erf = 1 - series * Math.exp(-x * x);
  return z < 0 ? (1 - erf) / 2 : (1 + erf) / 2;
}
