import { parse } from 'yaml';
import type { z } from 'zod';
import type { Result } from '../../common/result.ts';
import { Snapshot, type SnapshotProject } from './snapshot-schema.ts';

/** The longest text that is read, in characters: 100,000 computes as JSON have about 30 million. */
const MOST_CHARACTERS = 64 * 1024 * 1024;

/** Reads and checks the text of a fleet file, YAML or JSON. A problem names the first place that is wrong. */
export function readSnapshot(text: string): Result<Snapshot> {
  if (text.length > MOST_CHARACTERS) return { ok: false, problem: `has more than ${MOST_CHARACTERS} characters` };
  const data = parseText(text);
  if (!data.ok) return data;
  const parsed = Snapshot.safeParse(data.value, { error: explainIssue });
  if (!parsed.success) return { ok: false, problem: firstProblem(parsed.error) };
  const contradiction = contradictionIn(parsed.data.projects);
  return contradiction === undefined ? { ok: true, value: parsed.data } : { ok: false, problem: contradiction };
}

/** JSON is YAML too, but its own parser is ten times as fast. */
function parseText(text: string): Result<unknown> {
  if (/^\s*\{/.test(text)) {
    try {
      return { ok: true, value: JSON.parse(text) };
    } catch {
      // It may still be YAML in braces.
    }
  }
  try {
    return { ok: true, value: parse(text) };
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    return { ok: false, problem: `is neither YAML nor JSON: ${line.replace(/:$/, '')}` };
  }
}

function explainIssue({ code, input, ...issue }: z.core.$ZodRawIssue): string | undefined {
  if (code === 'invalid_type') return input === undefined ? 'is missing' : `must be ${nounFor(String(issue.expected))}`;
  if (code === 'invalid_value' && input === undefined) return 'is missing';
  if (code === 'invalid_value') return `must be one of ${(issue.values as unknown[]).join(', ')}`;
  return undefined;
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'keys with values',
};

function nounFor(type: string): string {
  return NOUNS[type] ?? type;
}

function firstProblem({ issues }: z.ZodError): string {
  const [issue] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return `${issue?.path.join('.') || 'the whole file'}: ${issue?.message}${more}`;
}

/** What the schema can't say: ids are unique, and a branch is described in one way. */
function contradictionIn(projects: readonly SnapshotProject[]): string | undefined {
  const projectIds = new Set<string>();
  const computeIds = new Set<string>();
  for (const [at, { id, computes }] of projects.entries()) {
    if (projectIds.size === projectIds.add(id).size) return `projects.${at}.id: ${id} is there twice`;
    const branches = new Map<string, string>();
    for (const [place, compute] of computes.entries()) {
      const where = `projects.${at}.computes.${place}`;
      if (computeIds.size === computeIds.add(compute.id).size) return `${where}.id: ${compute.id} is there twice`;
      if (compute.branch === undefined) continue;
      const described = JSON.stringify(compute.branch);
      if ((branches.get(compute.branch_id) ?? described) !== described) {
        return `${where}.branch: ${compute.branch_id} is described in two ways`;
      }
      branches.set(compute.branch_id, described);
    }
  }
  return undefined;
}
