import { z } from 'zod';
import { isAllowedSize, nearestSizes } from '../domain/compute/compute-units.ts';
import { CONNECTION_PROFILES, type ConnectionProfile, tableProfile } from '../domain/connections/connection-profile.ts';

const WHAT = 'must be seed, current, or {max_connections: {1: 450, …}, reserved: 0}';
const ROWS = 'must be a table of sizes in CU and their connections: {1: 450, 2: 901}';
const MOST_CONNECTIONS = 1_000_000;

const count = z
  .int({ error: 'must be a whole number of connections' })
  .min(0, { error: 'must not be negative' })
  .max(MOST_CONNECTIONS, { error: `must be ${MOST_CONNECTIONS} at most` });

const byCu = z
  .record(z.string(), count, { error: ROWS })
  .refine((rows) => Object.keys(rows).length > 0, { error: 'must have at least one size' })
  .superRefine((rows, context) => {
    for (const size of Object.keys(rows).filter((one) => !isAllowedSize(Number(one)))) {
      const message = `is not a size in CU${nearestSizes(Number(size))}`;
      context.addIssue({ code: 'custom', path: [size], message });
    }
  })
  .transform((rows) => new Map(Object.entries(rows).map(([size, connections]) => [Number(size), connections])));

const table = z.strictObject({ max_connections: byCu, reserved: count.default(0) }, { error: WHAT });

/** `profile` of `ebb.yaml`: which max_connections a size has. */
export const connectionProfileSchema = z
  .union([z.literal(['seed', 'current']), table], { error: WHAT })
  .transform((profile): ConnectionProfile => {
    if (typeof profile === 'string') return CONNECTION_PROFILES[profile];
    return tableProfile({ name: 'table', byCu: profile.max_connections, reserved: profile.reserved });
  });
