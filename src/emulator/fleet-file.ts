import { parse } from 'yaml';
import { z } from 'zod';
import { COMPUTE_SIZES_CU } from '../domain/compute/compute-units.ts';
import type { Fleet, FleetCompute, FleetProject } from './fleet.ts';
import { consumptionSchema, loadSchema, pastOperationSchema, toLoad } from './load-schema.ts';
import { settingsProblem } from './world/create-compute.ts';
import { DAY_MS } from './world/units.ts';

const id = z.string().regex(/^[a-z0-9-]{1,60}$/, 'must be 1 to 60 of a-z, 0-9 and -');
const size = z.number().refine((cu) => COMPUTE_SIZES_CU.includes(cu), 'is not a size that the platform has');
const instant = z
  .string()
  .refine((text) => !Number.isNaN(Date.parse(text)), 'must be an ISO 8601 instant')
  .transform((text) => Date.parse(text));

const branch = z.object({
  name: z.string().optional(),
  default: z.boolean().optional(),
  protected: z.boolean().optional(),
});

const computeSchema = z.object({
  id,
  branch_id: id,
  branch: branch.optional(),
  type: z.enum(['read_write', 'read_only']),
  min_cu: size,
  max_cu: size,
  suspend_timeout_seconds: z.number().int(),
  state: z.enum(['init', 'active', 'idle']),
  created_at: instant.optional(),
  last_active: instant.optional(),
  connections: z.number().int().min(0).default(0),
  load: z.array(loadSchema).optional(),
  history: z.array(pastOperationSchema).optional(),
});

const projectSchema = z.object({
  id,
  name: z.string().min(1).optional(),
  account: id.optional(),
  region_id: z.string().min(1),
  pg_version: z.number().int().min(14).max(18),
  plan: z.enum(['free', 'launch', 'scale']).optional(),
  computes: z.array(computeSchema),
});

const fleetFile = z.object({
  projects: z.array(projectSchema),
  history: z.object({ days: z.number().min(0).max(400) }).optional(),
  consumption: consumptionSchema.optional(),
});

type ParsedFleet = z.infer<typeof fleetFile>;
type ParsedCompute = z.infer<typeof computeSchema>;

type FleetFileResult = { ok: true; fleet: Fleet } | { ok: false; message: string };

function toCompute(parsed: ParsedCompute): FleetCompute {
  return {
    id: parsed.id,
    branchId: parsed.branch_id,
    branch: parsed.branch,
    type: parsed.type,
    minCu: parsed.min_cu,
    maxCu: parsed.max_cu,
    suspendTimeoutSeconds: parsed.suspend_timeout_seconds,
    state: parsed.state,
    createdAtMs: parsed.created_at,
    lastActiveAtMs: parsed.last_active,
    connections: parsed.connections,
    load: parsed.load?.map(toLoad),
    pastOperations: parsed.history,
  };
}

function toProject(parsed: ParsedFleet['projects'][number]): FleetProject {
  return {
    id: parsed.id,
    name: parsed.name ?? parsed.id,
    account: parsed.account,
    regionId: parsed.region_id,
    pgVersion: parsed.pg_version,
    plan: parsed.plan,
    computes: parsed.computes.map(toCompute),
  };
}

function firstDuplicate(values: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const value of values) {
    if (seen.has(value)) return value;
    seen.add(value);
  }
  return undefined;
}

function projectProblem({ computes }: FleetProject): string | undefined {
  const branch = firstDuplicate(computes.filter(({ type }) => type === 'read_write').map(({ branchId }) => branchId));
  if (branch !== undefined) return `branch ${branch} has two read_write computes`;
  const wrong = computes.find((compute) => settingsProblem(compute) !== undefined);
  return wrong === undefined ? undefined : `compute ${wrong.id}: ${settingsProblem(wrong)}`;
}

/** Rules that the schema can't express: unique ids, at most one primary for each branch, settings that the platform accepts. */
function contradiction({ projects }: Fleet): string | undefined {
  const id =
    firstDuplicate(projects.map(({ id }) => id)) ??
    firstDuplicate(projects.flatMap(({ computes }) => computes.map(({ id }) => id)));
  if (id !== undefined) return `the id ${id} occurs twice`;
  return projects.map(projectProblem).find((problem) => problem !== undefined);
}

/** Parses a fleet file, YAML or JSON. Unknown keys are ignored, but not in `load` and `consumption`. The message names the first wrong place. */
export function parseFleet(text: string): FleetFileResult {
  let data: unknown;
  try {
    data = parse(text);
  } catch (error) {
    const [line] = (error instanceof Error ? error.message : String(error)).split('\n');
    return { ok: false, message: `not YAML or JSON: ${line}` };
  }
  const parsed = fleetFile.safeParse(data);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { ok: false, message: `${issue?.path.join('.') || 'the file'}: ${issue?.message}` };
  }
  const { projects, history, consumption } = parsed.data;
  const fleet: Fleet = {
    projects: projects.map(toProject),
    historyMs: history && history.days * DAY_MS,
    consumption,
  };
  const problem = contradiction(fleet);
  return problem === undefined ? { ok: true, fleet } : { ok: false, message: problem };
}
