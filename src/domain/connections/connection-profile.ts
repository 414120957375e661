/** The connections that Postgres accepts at a size. The specification and today's platform differ, so each account names its profile. */
import type { Size } from '../compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_CONNECTIONS_CEILING, maxConnectionsAt } from '../compute/compute-units.ts';

export interface ConnectionProfile {
  name: string;
  /** The part of `max_connections` that is not available to users. */
  reserved: number;
  /** `max_connections` at this size; it never decreases if an end of the range increases. */
  maxConnections(size: Size): number;
}

const CONNECTIONS_PER_CU = 419.66;
const MIN_CONNECTIONS = 100;
/** A maximum above this multiple of the minimum gives no more connections. */
export const MAX_USEFUL_RATIO = 8;

/** `max_connections` by min(max, 8 · min). Source: the vendor's documentation, as of 2026-11-21. */
function maxConnectionsOf2026({ minCu, maxCu }: Size): number {
  const cu = Math.min(maxCu, MAX_USEFUL_RATIO * minCu);
  return Math.max(MIN_CONNECTIONS, Math.min(MAX_CONNECTIONS_CEILING, Math.floor(cu * CONNECTIONS_PER_CU)));
}

/** The built-in profiles: the specification's table by the maximum, and the vendor's documentation. */
export const CONNECTION_PROFILES: Readonly<Record<'specification' | 'vendor-2026', ConnectionProfile>> = {
  specification: { name: 'specification', reserved: 0, maxConnections: ({ maxCu }) => maxConnectionsAt(maxCu) },
  'vendor-2026': { name: 'vendor-2026', reserved: 7, maxConnections: maxConnectionsOf2026 },
};

/**
 * Builds a profile from a table of `max_connections` by maximum size in CU. Sizes between two entries use the smaller one, sizes below
 * the first entry use the first.
 */
export function tableProfile(table: {
  name: string;
  byCu: ReadonlyMap<number, number>;
  reserved: number;
}): ConnectionProfile {
  const rows = [...table.byCu].sort(([a], [b]) => a - b);
  const first = rows[0]?.[1] ?? 0;
  const maxConnections = ({ maxCu }: Size) => rows.findLast(([cu]) => cu <= maxCu)?.[1] ?? first;
  return { name: table.name, reserved: table.reserved, maxConnections };
}

/** The smallest maximum, in CU, that with this minimum accepts as many connections as `maxCu`. */
export function usefulMaximum(minCu: number, maxCu: number, { maxConnections }: ConnectionProfile): number {
  const most = maxConnections({ minCu, maxCu });
  const isEnough = (cu: number) => cu >= minCu && maxConnections({ minCu, maxCu: cu }) >= most;
  return COMPUTE_SIZES_CU.find((cu) => cu <= maxCu && isEnough(cu)) ?? maxCu;
}
