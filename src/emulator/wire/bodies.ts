import { z } from 'zod';
import { withoutUndefined } from '../load-schema.ts';
import type { NewBranch } from '../world/branches.ts';
import type { NewComputeRequest } from '../world/create-compute.ts';
import type { ComputeSettings } from '../world/entities.ts';
import type { NewProject } from '../world/projects.ts';

const title = z.string().min(1).max(256);
const type = z.enum(['read_write', 'read_only']);

const settingFields = {
  autoscaling_limit_min_cu: z.number().optional(),
  autoscaling_limit_max_cu: z.number().optional(),
  suspend_timeout_seconds: z.number().int().optional(),
  settings: z.object({ pg_settings: z.record(z.string(), z.string()).optional() }).optional(),
};

const computeFields = z.object({
  ...settingFields,
  branch_id: z.string().optional(),
  disabled: z.boolean().optional(),
  pooler_enabled: z.boolean().optional(),
  name: z.string().min(1).max(64).optional(),
});

function settingsOf(fields: z.output<z.ZodObject<typeof settingFields>>): Partial<ComputeSettings> {
  return withoutUndefined({
    minCu: fields.autoscaling_limit_min_cu,
    maxCu: fields.autoscaling_limit_max_cu,
    suspendTimeoutSeconds: fields.suspend_timeout_seconds,
    pgSettings: fields.settings?.pg_settings,
  });
}

function computeSettingsOf(fields: z.output<typeof computeFields>): Partial<ComputeSettings> {
  const { branch_id: branchId, disabled, pooler_enabled: poolerEnabled, name } = fields;
  return { ...settingsOf(fields), ...withoutUndefined({ branchId, disabled, poolerEnabled, name }) };
}

export const computeChanges = z
  .object({ endpoint: computeFields })
  .transform(({ endpoint }) => computeSettingsOf(endpoint));

export const newCompute = z
  .object({ endpoint: computeFields.extend({ branch_id: z.string(), type }) })
  .transform(({ endpoint }): NewComputeRequest => {
    return { branchId: endpoint.branch_id, type: endpoint.type, settings: computeSettingsOf(endpoint) };
  });

export const newBranch = z
  .object({
    branch: z
      .object({ name: title.optional(), parent_id: z.string().optional(), protected: z.boolean().default(false) })
      .default({ protected: false }),
    endpoints: z.array(z.object({ ...settingFields, type })).default([]),
  })
  .default({ branch: { protected: false }, endpoints: [] })
  .transform(
    ({ branch, endpoints }): NewBranch => ({
      name: branch.name,
      parentId: branch.parent_id || undefined,
      protected: branch.protected,
      computes: endpoints.map((endpoint) => ({ type: endpoint.type, settings: settingsOf(endpoint) })),
    }),
  );

export const newProject = z
  .object({
    project: z.object({
      ...settingFields,
      name: title.optional(),
      org_id: z.string().optional(),
      region_id: z.string().optional(),
      pg_version: z.number().int().min(14).max(18).optional(),
      branch: z.object({ name: title.optional() }).optional(),
      default_endpoint_settings: z.object(settingFields).optional(),
    }),
  })
  .transform(
    ({ project }): NewProject => ({
      settings: { ...settingsOf(project), ...settingsOf(project.default_endpoint_settings ?? {}) },
      name: project.name,
      orgId: project.org_id,
      regionId: project.region_id,
      pgVersion: project.pg_version,
      branchName: project.branch?.name,
    }),
  );

/** The emulator can change only the name of a project. */
export const projectName = z.object({ project: z.object({ name: title }) }).transform(({ project }) => project.name);
export const branchName = z.object({ branch: z.object({ name: title }) }).transform(({ branch }) => branch.name);

export const newKey = z.object({ key_name: z.string().min(1).max(64), project_id: z.string().optional() });

/** Parses external data; the message names the first wrong field. */
export function parseInput<S extends z.ZodType>(
  schema: S,
  data: unknown,
): { ok: true; value: z.output<S> } | { ok: false; message: string } {
  const parsed = schema.safeParse(data);
  if (parsed.success) return { ok: true, value: parsed.data };
  const issue = parsed.error.issues[0];
  const place = issue?.path.join('.');
  return { ok: false, message: place ? `${place}: ${issue?.message}` : (issue?.message ?? 'malformed') };
}
