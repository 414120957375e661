import { z } from 'zod';
import type { NewBranch } from '../world/branches.ts';
import type { NewComputeRequest } from '../world/create-compute.ts';
import type { ComputeSettings } from '../world/entities.ts';
import type { NewProject } from '../world/projects.ts';

const sizes = {
  autoscaling_limit_min_cu: z.number().optional(),
  autoscaling_limit_max_cu: z.number().optional(),
  suspend_timeout_seconds: z.number().int().optional(),
  settings: z.object({ pg_settings: z.record(z.string(), z.string()).optional() }).optional(),
};

const computeChanges = z.object({
  ...sizes,
  branch_id: z.string().optional(),
  disabled: z.boolean().optional(),
  pooler_enabled: z.boolean().optional(),
  name: z.string().min(1).max(64).optional(),
});

const type = z.enum(['read_write', 'read_only']);
const updateCompute = z.object({ endpoint: computeChanges });
const newCompute = z.object({ endpoint: computeChanges.extend({ branch_id: z.string(), type }) });
const newBranch = z
  .object({
    branch: z
      .object({
        name: z.string().min(1).max(256).optional(),
        parent_id: z.string().optional(),
        protected: z.boolean().default(false),
      })
      .default({ protected: false }),
    endpoints: z.array(z.object({ ...sizes, type })).default([]),
  })
  .default({ branch: { protected: false }, endpoints: [] });
const newProject = z.object({
  project: z.object({
    ...sizes,
    name: z.string().min(1).max(256).optional(),
    org_id: z.string().optional(),
    region_id: z.string().optional(),
    pg_version: z.number().int().min(14).max(18).optional(),
    branch: z.object({ name: z.string().min(1).max(256).optional() }).optional(),
    default_endpoint_settings: z.object(sizes).optional(),
  }),
});
const projectName = z.object({ project: z.object({ name: z.string().min(1).max(256) }) });
const branchName = z.object({ branch: z.object({ name: z.string().min(1).max(256) }) });
const newKey = z.object({ key_name: z.string().min(1).max(64), project_id: z.string().optional() });

type Read<T> = { ok: true; value: T } | { ok: false; message: string };

/** Parses external data; the message names the first wrong field. */
export function read<S extends z.ZodType>(schema: S, data: unknown): Read<z.output<S>> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return { ok: true, value: parsed.data };
  const issue = parsed.error.issues[0];
  const place = issue?.path.join('.');
  return { ok: false, message: place ? `${place}: ${issue?.message}` : (issue?.message ?? 'malformed') };
}

function toSizes(changes: z.output<z.ZodObject<typeof sizes>>): Partial<ComputeSettings> {
  const settings: Partial<ComputeSettings> = {};
  if (changes.autoscaling_limit_min_cu !== undefined) settings.minCu = changes.autoscaling_limit_min_cu;
  if (changes.autoscaling_limit_max_cu !== undefined) settings.maxCu = changes.autoscaling_limit_max_cu;
  if (changes.suspend_timeout_seconds !== undefined) settings.suspendTimeoutSeconds = changes.suspend_timeout_seconds;
  if (changes.settings?.pg_settings !== undefined) settings.pgSettings = changes.settings.pg_settings;
  return settings;
}

function toSettings(changes: z.output<typeof computeChanges>): Partial<ComputeSettings> {
  const settings = toSizes(changes);
  if (changes.branch_id !== undefined) settings.branchId = changes.branch_id;
  if (changes.disabled !== undefined) settings.disabled = changes.disabled;
  if (changes.pooler_enabled !== undefined) settings.poolerEnabled = changes.pooler_enabled;
  if (changes.name !== undefined) settings.name = changes.name;
  return settings;
}

export function readComputeChanges(body: unknown): Read<Partial<ComputeSettings>> {
  const result = read(updateCompute, body);
  return result.ok ? { ok: true, value: toSettings(result.value.endpoint) } : result;
}

export function readNewCompute(body: unknown): Read<NewComputeRequest> {
  const result = read(newCompute, body);
  if (!result.ok) return result;
  const { branch_id: branchId, type: wanted } = result.value.endpoint;
  return { ok: true, value: { branchId, type: wanted, settings: toSettings(result.value.endpoint) } };
}

export function readNewBranch(body: unknown): Read<NewBranch> {
  const result = read(newBranch, body);
  if (!result.ok) return result;
  const { branch, endpoints } = result.value;
  return {
    ok: true,
    value: {
      protected: branch.protected,
      computes: endpoints.map((endpoint) => ({ type: endpoint.type, settings: toSizes(endpoint) })),
      name: branch.name,
      parentId: branch.parent_id || undefined,
    },
  };
}

export function readNewProject(body: unknown): Read<NewProject> {
  const result = read(newProject, body);
  if (!result.ok) return result;
  const { project } = result.value;
  return {
    ok: true,
    value: {
      settings: { ...toSizes(project), ...toSizes(project.default_endpoint_settings ?? {}) },
      name: project.name,
      orgId: project.org_id,
      regionId: project.region_id,
      pgVersion: project.pg_version,
      branchName: project.branch?.name,
    },
  };
}

/** The name is the only property of a project that can be changed here. */
export function readProjectName(body: unknown): Read<string> {
  const result = read(projectName, body);
  return result.ok ? { ok: true, value: result.value.project.name } : result;
}

export function readBranchName(body: unknown): Read<string> {
  const result = read(branchName, body);
  return result.ok ? { ok: true, value: result.value.branch.name } : result;
}

export function readNewKey(body: unknown): Read<z.output<typeof newKey>> {
  return read(newKey, body);
}
