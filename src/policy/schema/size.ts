import { z } from 'zod';
import type { Size as DomainSize } from '../../domain/compute/compute.ts';
import { COMPUTE_SIZES_CU, impossibleSize, isAllowedSize, sizeProblems } from '../../domain/compute/compute-units.ts';
import { expected, mapping } from './expected.ts';
import { SIZE_PATTERN } from './patterns.ts';

const WHAT = 'a size in CU: fixed such as 2, a range such as 1-4, or {min: 1, max: 4}';
const RANGE = /^(\d{1,3}(?:\.\d{1,4})?)(?:\s*-\s*(\d{1,3}(?:\.\d{1,4})?))?$/;
const cu = z.number(expected('a number of CU')).meta({ title: 'a size in CU', enum: [...COMPUTE_SIZES_CU] });

/** A size as people write it; once parsed, a range in CU that the platform allows. */
export const Size = z
  .union(
    [
      cu,
      z.string().regex(RANGE, `expected ${WHAT}`).meta({ pattern: SIZE_PATTERN }),
      mapping({ min: cu.describe('The smallest size, in CU.'), max: cu.describe('The largest.') }, WHAT),
    ],
    expected(WHAT),
  )
  .meta({ title: 'a size: 2, 1-4 or {min: 1, max: 4}' })
  .describe('Size in compute units (CU): 2 is a fixed size; 1-4 or {min: 1, max: 4} an autoscaling range.')
  .transform((value, context): DomainSize => {
    const size = toSize(value);
    for (const message of sizeProblems(size)) context.issues.push({ code: 'custom', message, input: value });
    return size;
  });
export type Size = z.infer<typeof Size>;

function toSize(value: number | string | { min: number; max: number }): DomainSize {
  if (typeof value === 'number') return { minCu: value, maxCu: value };
  if (typeof value === 'object') return { minCu: value.min, maxCu: value.max };
  const [, min, max = min] = RANGE.exec(value) ?? [];
  return { minCu: Number(min), maxCu: Number(max) };
}

/** One size of the table, in CU. */
export function singleSize(what: string) {
  return z
    .number(expected(what))
    .meta({ title: 'a size in CU', enum: [...COMPUTE_SIZES_CU] })
    .superRefine((size, context) => {
      if (!isAllowedSize(size)) context.addIssue({ code: 'custom', message: impossibleSize(size) });
    });
}
