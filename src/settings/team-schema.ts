import { resolve } from 'node:path';
import { z } from 'zod';
import { parseSelector } from '../domain/policy/selector.ts';
import { KINDS } from '../policy/kinds/kinds.ts';
import type { Team } from '../policy/teams.ts';
import { byName, listOrText, oneOf, text } from './schema-parts.ts';

const PRIORITY_FORM = 'must be a whole number from -1000000 to 1000000';
const FORM = 'must be a mapping such as {policies: "policies/web/**", projects: ["web-*"]}';

const kinds = Object.keys(KINDS) as [keyof typeof KINDS, ...(keyof typeof KINDS)[]];

const team = z.strictObject(
  {
    policies: listOrText(text(), 'must be a path or a list of paths').refine((paths) => paths.length > 0, {
      error: 'names no path; write a file, folder or glob',
    }),
    projects: z
      .array(text(), { error: 'must be a list of globs on projects such as ["web-*"]' })
      .refine((globs) => globs.some((glob) => !glob.startsWith('!')), {
        error: 'selects no project; write a glob such as "web-*"',
      })
      .superRefine((projects, context) => {
        const outcome = parseSelector({ projects, minAgeMs: 0 }, 'file');
        if (!outcome.ok) context.addIssue({ code: 'custom', message: outcome.problem });
      }),
    kinds: z
      .array(oneOf(kinds), { error: 'must be a list of kinds of policies' })
      .min(1, { error: 'must name a kind; leave it out to allow all' })
      .optional(),
    max_priority: z
      .int({ error: PRIORITY_FORM })
      .min(-1_000_000, { error: PRIORITY_FORM })
      .max(1_000_000, { error: PRIORITY_FORM })
      .optional(),
  },
  { error: FORM },
);

export const TEAM_KEYS: readonly string[] = Object.keys(team.shape);

export const teamsSchema = byName(team, 'must map names of teams to what they may do');

/** The teams, with absolute paths: relative ones start from `base`. */
export function teamsOf(teams: z.output<typeof teamsSchema>, base: string): Team[] {
  return Object.entries(teams).map(([name, { policies, projects, kinds: allowed, max_priority: maxPriority }]) => ({
    name,
    policies: policies.map((path) => resolve(base, path)),
    projects,
    ...(allowed && { kinds: allowed }),
    ...(maxPriority !== undefined && { maxPriority }),
  }));
}
