/**
 * The connections that Postgres accepts at a size. The specification and today's platform differ, so each account names the one that holds
 * for it.
 */
import type { Size } from '../compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_CONNECTIONS_CEILING, maxConnectionsAt } from '../compute/compute-units.ts';

export interface ConnectionProfile {
  name: string;
  /** Connections that max_connections keeps from users. */
  reserved: number;
  /** max_connections of a compute of this size; it never falls where an end of the range rises. */
  maxConnections(size: Size): number;
}

const CONNECTIONS_PER_CU = 419.66;
const FEWEST_CONNECTIONS = 100;
const MAX_TO_MIN = 8;

/** max_connections by the smaller of the maximum and 8 times the minimum. Source: the vendor's documentation, as of 2026-11-21. */
function maxConnectionsOf2026({ minCu, maxCu }: Size): number {
  const cu = Math.min(maxCu, MAX_TO_MIN * minCu);
  return Math.max(FEWEST_CONNECTIONS, Math.min(MAX_CONNECTIONS_CEILING, Math.floor(cu * CONNECTIONS_PER_CU)));
}

/** `specification`: its table, by the maximum. `vendor-2026`: the vendor's documentation, by min(max, 8·min). */
export const CONNECTION_PROFILES: Readonly<Record<'specification' | 'vendor-2026', ConnectionProfile>> = {
  specification: { name: 'specification', reserved: 0, maxConnections: ({ maxCu }) => maxConnectionsAt(maxCu) },
  'vendor-2026': { name: 'vendor-2026', reserved: 7, maxConnections: maxConnectionsOf2026 },
};

/**
 * A profile by a table of max_connections by maximum size in CU; between two sizes of the table that of the smaller one
 * holds, below the first that of the first.
 */
export function tableProfile(table: {
  name: string;
  byCu: ReadonlyMap<number, number>;
  reserved: number;
}): ConnectionProfile {
  const rows = [...table.byCu].sort(([a], [b]) => a - b);
  const first = rows[0]?.[1] ?? 0;
  return {
    name: table.name,
    reserved: table.reserved,
    maxConnections: ({ maxCu }) => rows.findLast(([cu]) => cu <= maxCu)?.[1] ?? first,
  };
}

/** The smallest maximum, in CU, from which on a minimum keeps a larger one up to `maxCu` from giving more connections. */
export function usefulMaximum(minCu: number, maxCu: number, { maxConnections }: ConnectionProfile): number {
  const most = maxConnections({ minCu, maxCu });
  const isEnough = (cu: number) => cu >= minCu && maxConnections({ minCu, maxCu: cu }) >= most;
  return COMPUTE_SIZES_CU.find((cu) => cu <= maxCu && isEnough(cu)) ?? maxCu;
}
