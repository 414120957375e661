import { z } from 'zod';
import { expected } from './expected.ts';

const WHAT = 'a share such as "70%", from 1% to 100%';

/** A share as people write it; once parsed, a number in (0, 1]. */
export const Share = z
  .string(expected(WHAT))
  .regex(/^([1-9]\d?|100)%$/, `expected ${WHAT}`)
  .meta({ title: '1% to 100%' })
  .transform((text) => Number(text.slice(0, -1)) / 100);
export type Share = z.infer<typeof Share>;
