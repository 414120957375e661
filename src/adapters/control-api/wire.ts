import { z } from 'zod';
import { COMPUTE_STATES } from '../../domain/compute/compute.ts';
import type { UnreadableCompute } from '../../ports/control-api.ts';

// Answers of the control API, as far as ebb uses them. Unknown fields are ignored, unknown actions and statuses accepted.

/** Ids enter paths and queries, so an id with any other character is refused. */
export const WireId = z
  .string()
  .max(128)
  .regex(/^[a-z0-9-]+$/);

/** An ISO 8601 timestamp as milliseconds since the epoch. */
export const Instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const OptionalInstant = Instant.nullish();

export const WireProject = z.object({
  id: WireId,
  name: z.string(),
  region_id: z.string(),
  updated_at: Instant,
  compute_last_active_at: OptionalInstant,
  pg_version: z.int().nullish(),
  org_id: z.string().nullish(),
});
export type WireProject = z.infer<typeof WireProject>;

export const WireCompute = z.object({
  id: WireId,
  /** An invalid host counts as absent: it is needed only to open or check Postgres connections. */
  host: z.string().max(253).nullish().catch(undefined),
  project_id: WireId,
  branch_id: WireId,
  region_id: z.string(),
  type: z.enum(['read_write', 'read_only']),
  autoscaling_limit_min_cu: z.number().positive(),
  autoscaling_limit_max_cu: z.number().positive(),
  suspend_timeout_seconds: z.int().min(-1),
  current_state: z.enum(COMPUTE_STATES),
  pending_state: z.enum(COMPUTE_STATES).nullish(),
  disabled: z.boolean(),
  created_at: Instant,
  updated_at: OptionalInstant,
  started_at: OptionalInstant,
  last_active: OptionalInstant,
});
export type WireCompute = z.infer<typeof WireCompute>;

export const WireOperation = z.object({
  id: WireId,
  project_id: WireId,
  endpoint_id: WireId.nullish(),
  action: z.string(),
  status: z.string(),
  failures_count: z.int(),
  created_at: Instant,
  updated_at: Instant,
  total_duration_ms: z.number().nonnegative().nullish(),
  error: z.string().nullish(),
});
export type WireOperation = z.infer<typeof WireOperation>;

export const WireBranch = z.object({
  id: WireId,
  name: z.string(),
  parent_id: WireId.nullish(),
  default: z.boolean(),
  protected: z.boolean(),
});
export type WireBranch = z.infer<typeof WireBranch>;

const Operations = z.array(WireOperation);
const Pagination = z.object({ cursor: z.string().nullish() }).nullish();

export const ProjectsPage = z.object({
  projects: z.array(z.unknown()),
  unavailable_project_ids: z.array(z.string()).nullish(),
  pagination: Pagination,
});
export const OperationsPage = z.object({ operations: Operations, pagination: Pagination });
/** Pages of branches have their cursor as `next`, others as `cursor`. */
export const BranchesPage = z.object({
  branches: z.array(z.unknown()),
  pagination: z.object({ next: z.string().nullish(), cursor: z.string().nullish() }).nullish(),
});
export const ProjectAnswer = z.object({
  project: z.object({
    id: WireId,
    compute_time_seconds: z.number().nonnegative(),
    active_time_seconds: z.number().nonnegative().nullish(),
    consumption_period_start: Instant,
    consumption_period_end: Instant,
    owner: z.object({ subscription_type: z.string().nullish() }).nullish(),
  }),
});

export const ComputesAnswer = z.object({ endpoints: z.array(z.unknown()) });
export const ChangeAnswerBody = z.object({ endpoint: WireCompute, operations: Operations });
export const CreatedKey = z.object({
  id: z.int(),
  key: z.string().min(1),
  name: z.string(),
  created_at: Instant,
  project_id: WireId.nullish(),
});
/** Only operations are used. They may be absent, although the specification requires them. */
export const RestartAnswerBody = z.object({ operations: Operations.default([]) });

/** Parses one project of a list. A problem begins with the project's id. */
export function readProject(item: unknown): { ok: true; value: WireProject } | { ok: false; problem: string } {
  const read = WireProject.safeParse(item);
  if (read.success) return { ok: true, value: read.data };
  const { data } = z.object({ id: WireId }).safeParse(item);
  return { ok: false, problem: `${data?.id ?? 'a project without an id'}: ${describeMismatch(read.error)}` };
}

/** Parses one branch of a list; undefined if it is invalid. */
export function readBranch(item: unknown): WireBranch | undefined {
  return WireBranch.safeParse(item).data;
}

/** Parses one compute of a list. Other computes of the project stay usable if one is invalid. */
export function readCompute(item: unknown): { ok: true; value: WireCompute } | { ok: false; value: UnreadableCompute } {
  const read = WireCompute.safeParse(item);
  if (read.success) return { ok: true, value: read.data };
  const { data } = z.object({ id: WireId }).safeParse(item);
  return { ok: false, value: { ...(data && { computeId: data.id }), message: describeMismatch(read.error) } };
}

export function isSafeId(id: string): boolean {
  return WireId.safeParse(id).success;
}

/** A sentence that ends with the place and kind of the first mismatch, without values: `…: operations.3.id: invalid_format`. */
export function describeMismatch(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return 'the answer is not what the specification says';
  return `the answer is not what the specification says: ${issue.path.join('.') || 'the whole body'}: ${issue.code}`;
}
