import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { FleetPlanJson, PlannedComputeJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { UserError } from '../fail.ts';

const Settings = { min_cu: z.number(), max_cu: z.number(), suspend_timeout_seconds: z.number() };

const PlanFile = z.object({
  at: z.string(),
  hash: z.string(),
  computes: z.array(
    z.object({
      project_id: z.string(),
      compute_id: z.string(),
      current: z.object({ ...Settings, state: z.string() }),
      desired: z.object({
        min_cu: z.number().nullable(),
        max_cu: z.number().nullable(),
        suspend_timeout_seconds: z.number().nullable(),
      }),
      verdict: z.enum(['act', 'wait', 'none']),
      actions: z.array(
        z.object({
          kind: z.enum(['update', 'restart']),
          fields: z.object(Settings).partial().optional(),
          disconnects: z.boolean(),
        }),
      ),
    }),
  ),
});

/** The fields of a plan file that `ebb apply` compares. */
type PlanFile = z.infer<typeof PlanFile>;
type Entry = PlanFile['computes'][number] | PlannedComputeJson;

const FIELDS = ['min_cu', 'max_cu', 'suspend_timeout_seconds'] as const;

/** Reads a plan of `ebb plan --out`. Throws a UserError for another file. */
export async function readPlanFile(path: string): Promise<PlanFile> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`--plan: ${path} cannot be read (${error.code ?? error.message}): check the path`);
  });
  const parsed = PlanFile.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  const place = parsed.error.issues[0]?.path.join('.') || 'the whole file';
  throw new UserError(`--plan: ${path} is not a plan (${place}): make one with ebb plan --out ${path}`);
}

/**
 * One line for each compute whose entry in the file differs from the present plan, or one if only the policies differ; none if the plans are
 * equal. The contents are compared, not the hash alone: a file can be edited and keep its hash.
 */
export function differences(file: PlanFile, now: FleetPlanJson): string[] {
  const before = describeAll(file.computes);
  const after = describeAll(now.computes);
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort();
  const lines = ids.flatMap((id) => {
    const was = before.get(id) ?? NOTHING;
    const is = after.get(id) ?? NOTHING;
    return was === is ? [] : [`${id}: the plan in the file is ${was}; the present one is ${is}`];
  });
  if (lines.length > 0 || file.hash === now.hash) return lines;
  return ['the policies are not those of the plan'];
}

const NOTHING = 'nothing';

function describeAll(computes: readonly Entry[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const one of computes) {
    if (one.actions.length === 0) continue;
    const first = texts.get(one.compute_id);
    texts.set(one.compute_id, first === undefined ? describe(one) : `${first}, and again ${describe(one)}`);
  }
  return texts;
}

function describe({ project_id, verdict, actions, current, desired }: Entry): string {
  const present = `${current.min_cu}-${current.max_cu} CU, ${current.suspend_timeout_seconds} s`;
  const steps = actions.map(({ kind, fields, disconnects }) => {
    return `${kind === 'restart' ? 'a restart' : named(fields ?? {})}${disconnects ? ' (disconnects)' : ''}`;
  });
  const later = verdict === 'act' ? '' : 'later ';
  return `${later}${steps.join(', then ')}, from ${present}, desired ${named(desired) || 'nothing'}, project ${project_id}`;
}

function named(values: { [Field in (typeof FIELDS)[number]]?: number | null | undefined }): string {
  return FIELDS.flatMap((name) => ((values[name] ?? null) === null ? [] : [`${name} ${values[name]}`])).join(', ');
}
