import { z } from 'zod';
import { COMPUTE_STATES } from '../../domain/compute/compute.ts';
import { impossibleSize, isAllowedSize } from '../../domain/compute/compute-units.ts';
import { isSafeId } from './wire.ts';

/**
 * A fleet file, from any source: what ebb reads of it. Keys that it doesn't know are left out, since the same file serves
 * the emulator.
 */

const Id = z.string().refine((text) => isSafeId(text), { error: 'must be 1 to 128 of a-z, 0-9 and "-"' });

const Size = z.number().superRefine((cu, context) => {
  if (!isAllowedSize(cu)) context.addIssue({ code: 'custom', message: impossibleSize(cu) });
});

/** Shortest and longest timeout in seconds; 0 is the default and −1 never. */
const [SHORTEST_SECONDS, LONGEST_SECONDS] = [60, 604_800];

const Timeout = z.number().refine(isTimeout, {
  error: `must be -1 (never), 0 (the default) or whole seconds from ${SHORTEST_SECONDS} to ${LONGEST_SECONDS}`,
});

function isTimeout(seconds: number): boolean {
  if (seconds === 0 || seconds === -1) return true;
  return Number.isInteger(seconds) && seconds >= SHORTEST_SECONDS && seconds <= LONGEST_SECONDS;
}

const INSTANT_PROBLEM = { error: 'must be an ISO 8601 instant with its offset, e.g. 2026-01-31T08:00:00Z' };
const Instant = z.iso.datetime({ offset: true, ...INSTANT_PROBLEM }).transform((text) => Date.parse(text));

const SETTINGS = { min_cu: Size, max_cu: Size, suspend_timeout_seconds: Timeout };
const RANGE_PROBLEM = { error: 'min_cu must not be greater than max_cu' };
const isRange = ({ min_cu, max_cu }: { min_cu: number; max_cu: number }) => min_cu <= max_cu;

const SnapshotBranch = z.object({
  name: z.string(),
  default: z.boolean().default(false),
  protected: z.boolean().default(false),
  /** Has a parent branch. If absent, every branch but the default one has. */
  child: z.boolean().optional(),
});
export type SnapshotBranch = z.infer<typeof SnapshotBranch>;

const SnapshotCompute = z
  .object({
    id: Id,
    branch_id: Id,
    branch: SnapshotBranch.optional(),
    type: z.enum(['read_write', 'read_only']),
    ...SETTINGS,
    state: z.enum(COMPUTE_STATES),
    disabled: z.boolean().default(false),
    created_at: Instant.optional(),
    started_at: Instant.optional(),
    last_active: Instant.optional(),
    connections: z.int({ error: 'must be a whole number' }).min(0, { error: 'must be 0 or more' }).optional(),
    baseline: z.object(SETTINGS).refine(isRange, RANGE_PROBLEM).optional(),
  })
  .refine(isRange, RANGE_PROBLEM);
export type SnapshotCompute = z.infer<typeof SnapshotCompute>;

const SnapshotProject = z.object({
  id: Id,
  /** Absent where it was not known when the file was made. */
  name: z.string().optional(),
  account: z.string().optional(),
  region_id: z.string(),
  pg_version: z.int({ error: 'must be a whole number' }).optional(),
  computes: z.array(SnapshotCompute),
});
export type SnapshotProject = z.infer<typeof SnapshotProject>;

export const Snapshot = z.object({ taken_at: Instant.optional(), projects: z.array(SnapshotProject) });
export type Snapshot = z.infer<typeof Snapshot>;
