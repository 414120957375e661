import { z } from 'zod';
import { DAY_MS, duration } from './duration.ts';
import { expected, mapping } from './expected.ts';
import { Share } from './share.ts';

/** Computes younger than this are left alone unless a selector says otherwise. */
const DEFAULT_MIN_AGE = '30m';

const Glob = z
  .string(expected('a glob such as "web-*"'))
  .max(256, 'a glob has at most 256 characters')
  .regex(/^!?[^!\s]/, 'expected a glob such as "web-*", or "!web-legacy" to exclude');

function globs(of: string) {
  return z
    .array(Glob, expected('a list of globs such as ["web-*", "!web-legacy"]'))
    .min(1, 'expected at least one glob')
    .max(1000, 'a list has at most 1000 globs')
    .refine((list) => list.length === 0 || list.some((glob) => !glob.startsWith('!')), {
      error: 'only excludes, so it selects nothing; add "*" to mean all others',
    })
    .describe(`Globs against ${of}; "!" before a glob excludes.`)
    .optional();
}

/** Which computes a policy is about. All keys that are given must match. */
export const Selector = mapping(
  {
    accounts: globs('names of accounts'),
    projects: globs('ids or names of projects'),
    branches: globs('ids or names of branches'),
    computes: globs('ids or names of computes'),
    regions: globs('ids of regions'),
    types: z
      .array(z.enum(['read_write', 'read_only']), expected('a list of read_write, read_only'))
      .min(1, 'expected at least one type')
      .describe('Types of computes.')
      .optional(),
    min_age: duration({ minMs: 0, maxMs: 365 * DAY_MS, text: '0s to 365d' })
      .describe('Computes younger than this are not selected.')
      .prefault(DEFAULT_MIN_AGE),
    branch_roles: z
      .array(z.enum(['default', 'protected', 'child']), expected('a list of default, protected, child'))
      .min(1, 'expected at least one role')
      .describe('Roles of the branch; any of them matches.')
      .optional(),
    share: Share.describe('A stable share of the computes, such as 10%, by hash of their ids.').optional(),
  },
  'a selector such as {projects: ["web-*"]}',
).superRefine((selector, context) => {
  const keys = Object.entries(selector).filter(
    ([key, value]) => key !== 'min_age' && key !== 'share' && value !== undefined,
  );
  if (keys.length > 0) return;
  context.addIssue({
    code: 'custom',
    message: 'selects nothing in particular; write {projects: ["*"]} to select everything',
  });
});
export type Selector = z.infer<typeof Selector>;
