import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { Operator } from '../../compose/operator-access.ts';
import { UserError } from '../fail.ts';

type ComputeBaseline = NonNullable<Parameters<Operator['restore']>[0]['baselines']>[number];

/** What `ebb init` writes to `baseline.json`, as far as a restore needs it. */
const BaselineFile = z.object({
  computes: z.array(
    z.object({
      compute_id: z.string().min(1),
      min_cu: z.number(),
      max_cu: z.number(),
      suspend_timeout_seconds: z.number(),
    }),
  ),
});

/** The computes of a file as `ebb init` writes it, or those that are named. Throws a UserError that says what is wrong with it. */
export async function readBaselineFile(path: string, named: readonly string[]): Promise<ComputeBaseline[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`--from ${path}: can't be read (${error.code}); give a file that ebb init has written`);
  });
  const read = BaselineFile.safeParse(parseJson(text));
  if (!read.success) {
    const [issue] = read.error.issues;
    const place = issue?.path.join('.') ?? '';
    const what = place === '' ? 'it is no JSON object with computes' : `${place}: ${issue?.message}`;
    throw new UserError(`--from ${path}: ${what}; give a file that ebb init has written`);
  }
  const { computes } = read.data;
  const missing = named.find((id) => !computes.some(({ compute_id }) => compute_id === id));
  if (missing !== undefined) throw new UserError(`--from ${path}: has no compute ${missing}`);
  const wanted = named.length === 0 ? computes : computes.filter(({ compute_id }) => named.includes(compute_id));
  if (wanted.length === 0) throw new UserError(`--from ${path}: has no computes`);
  return wanted;
}
