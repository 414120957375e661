/**
 * Compute units (CU): the allowed sizes, and how many connections Postgres accepts at each.
 * Source of both tables: the control API's specification, "Limits".
 */

/** Every size that the platform allows, in CU, ascending: 0.25, 0.5, 1..16, then the even numbers to 56. */
export const COMPUTE_SIZES_CU: readonly number[] = [
  0.25,
  0.5,
  ...Array.from({ length: 16 }, (_, index) => index + 1),
  ...Array.from({ length: 20 }, (_, index) => 18 + 2 * index),
];

/** The largest size, in CU, that an autoscaling range may reach; above it only a fixed size is allowed. */
export const MAX_AUTOSCALING_CU = 16;

/** The widest autoscaling range, maximum minus minimum, in CU. */
export const MAX_AUTOSCALING_SPAN_CU = 8;

/** max_connections by size in CU, from the specification; 9 CU and larger all have {@link MAX_CONNECTIONS_CEILING}. */
const SEED_MAX_CONNECTIONS: ReadonlyMap<number, number> = new Map([
  [0.25, 112],
  [0.5, 225],
  [1, 450],
  [2, 901],
  [3, 1351],
  [4, 1802],
  [5, 2253],
  [6, 2703],
  [7, 3154],
  [8, 3604],
]);

/** What max_connections is from 9 CU on. */
export const MAX_CONNECTIONS_CEILING = 4000;

/** True if the platform has a compute of exactly this size in CU. */
export function isAllowedSize(cu: number): boolean {
  return COMPUTE_SIZES_CU.includes(cu);
}

/**
 * The allowed sizes next to one that is not allowed: the largest below and the smallest above, in CU.
 * One element at either end of the table.
 */
export function nearestAllowedSizes(cu: number): number[] {
  const below = COMPUTE_SIZES_CU.findLast((size) => size < cu);
  const above = COMPUTE_SIZES_CU.find((size) => size > cu);
  return [below, above].filter((size) => size !== undefined);
}

/**
 * max_connections of a compute whose autoscaling maximum is `maxCu` (the specification: it follows the maximum size).
 * `maxCu` must be an allowed size in CU.
 */
export function maxConnectionsAt(maxCu: number): number {
  return SEED_MAX_CONNECTIONS.get(maxCu) ?? MAX_CONNECTIONS_CEILING;
}
