import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { FleetPlanJson, PlannedComputeJson } from '../../domain/fleet-plan-json.ts';
import { UserError } from '../fail.ts';

const Settings = { min_cu: z.number(), max_cu: z.number(), suspend_timeout_seconds: z.number() };

const PlanFile = z.looseObject({
  at: z.string(),
  hash: z.string(),
  computes: z.array(
    z.looseObject({
      project_id: z.string(),
      compute_id: z.string(),
      current: z.looseObject({ ...Settings, state: z.string() }),
      verdict: z.enum(['act', 'wait', 'none']),
      actions: z.array(
        z.looseObject({
          kind: z.enum(['update', 'restart']),
          fields: z.looseObject(Settings).partial().optional(),
          disconnects: z.boolean(),
        }),
      ),
    }),
  ),
});

/** What a plan file says that matters when it is applied. */
export type PlanFile = z.infer<typeof PlanFile>;
type Entry = Pick<PlannedComputeJson, 'current' | 'verdict' | 'actions'>;

/** Reads a plan that `ebb plan --out` has written, or says what is wrong with it. */
export async function readPlanFile(path: string): Promise<PlanFile> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`--plan: ${path} can not be read (${error.code ?? error.message}): check the path`);
  });
  const parsed = PlanFile.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  const place = parsed.error.issues[0]?.path.join('.') || 'the whole file';
  throw new UserError(`--plan: ${path} is no plan (${place}): make one with ebb plan --out ${path}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One line for each compute for which a file says something else than what is planned now. */
export function differences(file: PlanFile, now: FleetPlanJson): string[] {
  const before = new Map(file.computes.map((one) => [one.compute_id, describe(one as Entry)]));
  const after = new Map(now.computes.map((one) => [one.compute_id, describe(one)]));
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort();
  const lines = ids.flatMap((id) => {
    const [was = 'not there', is = 'not there'] = [before.get(id), after.get(id)];
    return was === is || (isNothing(was) && isNothing(is)) ? [] : [`${id}: planned was ${was}; now it is ${is}`];
  });
  return lines.length > 0 ? lines : ['the policies are not those of the plan'];
}

const NOTHING = 'nothing';

function isNothing(text: string): boolean {
  return text === NOTHING || text === 'not there';
}

function describe({ verdict, actions, current }: Entry): string {
  if (actions.length === 0) return NOTHING;
  const has = `${current.min_cu}-${current.max_cu} CU, ${current.suspend_timeout_seconds} s`;
  const what = actions.map(({ kind, fields, disconnects }) => {
    const set = Object.entries(fields ?? {}).map(([name, value]) => `${name} ${value}`);
    return `${kind === 'restart' ? 'a restart' : set.join(', ')}${disconnects ? ' (disconnects)' : ''}`;
  });
  return `${verdict === 'act' ? '' : 'later '}${what.join(', then ')}, from ${has}`;
}
