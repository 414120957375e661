import { parse } from 'yaml';
import { z } from 'zod';
import { messageOf } from '../../common/errors.ts';
import { parseJson, type Result } from '../../common/result.ts';
import { COMPUTE_STATES, type Compute, canonicalSuspendTimeout } from '../../domain/compute/compute.ts';
import { impossibleSizeText, isAllowedSize } from '../../domain/compute/compute-units.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Branch, ComputeFacts, ControlApi, FleetFacts, Project } from '../../ports/control-api.ts';
import { createReadOnlyApi, type ProjectContents, UNKNOWN_PARENT } from './read-only-api.ts';
import { isSafeId } from './wire.ts';

export interface SnapshotApi {
  /** Lists the file's content; every write is `forbidden`. */
  api: ControlApi;
  facts: FleetFacts;
  /** When the file was made; absent if the file does not say. */
  takenAtMs?: number;
}

/** The account of a project that names none, as in settings without `accounts`. */
const ONLY_ACCOUNT = 'default';

/** A compute of unknown age is old enough for every policy. */
const UNKNOWN_AGE_MS = 365 * DAY_MS;

/**
 * Opens a fleet file, YAML or JSON, as a read-only control API, or returns a problem in one line. `name` is the file's name in messages; a
 * compute without `created_at` is a year old at `nowMs`.
 */
export function createSnapshotApi(options: { text: string; name: string; nowMs: number }): Result<SnapshotApi> {
  const { text, name, nowMs } = options;
  const read = readSnapshot(text);
  if (!read.ok) return { ok: false, problem: `${name}: ${read.problem}` };
  const { taken_at: takenAtMs, projects } = read.value;
  const contents = projects.map((project) => contentOf(project, nowMs));
  const value = { api: createReadOnlyApi(contents, 'the snapshot'), facts: factsOf(projects) };
  return { ok: true, value: takenAtMs === undefined ? value : { ...value, takenAtMs } };
}

function contentOf(file: SnapshotProject, nowMs: number): ProjectContents {
  const { id: projectId, name, account = ONLY_ACCOUNT, region_id: regionId, pg_version: pgVersion } = file;
  const lastActive = file.computes.map((compute) => compute.last_active ?? Number.NEGATIVE_INFINITY);
  const computeLastActiveAtMs = Math.max(...lastActive);
  const project: Project = { account, projectId, name: name ?? projectId, regionId, updatedAtMs: nowMs };
  if (name === undefined) project.nameUnknown = true;
  if (pgVersion !== undefined) project.pgVersion = pgVersion;
  if (Number.isFinite(computeLastActiveAtMs)) project.computeLastActiveAtMs = computeLastActiveAtMs;
  const computes = file.computes.map((compute) => computeOf(project, compute, nowMs));
  return { project, computes, branches: { ok: true, value: branchesOf(file) } };
}

function computeOf(project: Project, file: SnapshotCompute, nowMs: number): Compute {
  const { started_at: startedAtMs, last_active: lastActiveAtMs } = file;
  return {
    account: project.account,
    projectId: project.projectId,
    projectName: project.name,
    ...(project.nameUnknown && { projectNameUnknown: true as const }),
    computeId: file.id,
    branchId: file.branch_id,
    type: file.type,
    regionId: project.regionId,
    ...settingsFrom(file),
    state: file.state,
    disabled: file.disabled,
    createdAtMs: file.created_at ?? nowMs - UNKNOWN_AGE_MS,
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(lastActiveAtMs !== undefined && { lastActiveAtMs }),
  };
}

function settingsFrom(file: Pick<SnapshotCompute, 'min_cu' | 'max_cu' | 'suspend_timeout_seconds'>) {
  const suspendTimeoutSeconds = canonicalSuspendTimeout(file.suspend_timeout_seconds);
  return { minCu: file.min_cu, maxCu: file.max_cu, suspendTimeoutSeconds };
}

/** Only branches that the file describes: the names and roles of the others are unknown. */
function branchesOf({ computes }: SnapshotProject): Branch[] {
  const described = new Map<string, SnapshotBranch>();
  for (const { branch_id: id, branch } of computes) if (branch) described.set(id, branch);
  const [defaultId] = [...described].find(([, branch]) => branch.default) ?? [];
  return [...described].map(([branchId, branch]) => {
    const { name, default: isDefault, protected: isProtected, child = !isDefault } = branch;
    const parentBranchId = isDefault ? UNKNOWN_PARENT : (defaultId ?? UNKNOWN_PARENT);
    return { branchId, name, isDefault, isProtected, ...(child && { parentBranchId }) };
  });
}

function factsOf(projects: readonly SnapshotProject[]): FleetFacts {
  const facts = new Map<string, ComputeFacts>();
  for (const { id, connections, baseline } of projects.flatMap(({ computes }) => computes)) {
    if (connections === undefined && baseline === undefined) continue;
    facts.set(id, {
      ...(connections !== undefined && { connections }),
      ...(baseline && { baseline: settingsFrom(baseline) }),
    });
  }
  return facts;
}

/** 100,000 computes as JSON have about 30 million characters. */
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Parses a fleet file, YAML or JSON. A problem names the first place that is wrong. */
function readSnapshot(text: string): Result<Snapshot> {
  if (text.length > MAX_CHARACTERS) return { ok: false, problem: `has more than ${MAX_CHARACTERS} characters` };
  const data = parseText(text);
  if (!data.ok) return data;
  const parsed = Snapshot.safeParse(data.value, { error: explainIssue });
  if (!parsed.success) return { ok: false, problem: firstProblem(parsed.error) };
  const contradiction = contradictionIn(parsed.data.projects);
  return contradiction === undefined ? { ok: true, value: parsed.data } : { ok: false, problem: contradiction };
}

/** JSON is YAML too, but JSON.parse is ten times as fast. A text in braces that is no JSON may still be YAML. */
function parseText(text: string): Result<unknown> {
  const value = /^\s*\{/.test(text) ? parseJson(text) : undefined;
  if (value !== undefined) return { ok: true, value };
  try {
    return { ok: true, value: parse(text) };
  } catch (error) {
    const [line = ''] = messageOf(error).split('\n');
    return { ok: false, problem: `is neither YAML nor JSON: ${line.replace(/:$/, '')}` };
  }
}

function explainIssue({ code, input, ...issue }: z.core.$ZodRawIssue): string | undefined {
  if (code === 'invalid_type')
    return input === undefined ? 'is missing' : `must be ${NOUNS[String(issue.expected)] ?? issue.expected}`;
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

function firstProblem({ issues }: z.ZodError): string {
  const [issue] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return `${issue?.path.join('.') || 'the whole file'}: ${issue?.message}${more}`;
}

/** Rules that the schema can't express: ids are unique, and a branch is described in one way. */
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

// The part of a fleet file that ebb reads. Unknown keys are ignored, since the same file serves the emulator.

const Id = z.string().refine((text) => isSafeId(text), { error: 'must be 1 to 128 of a-z, 0-9 and "-"' });

const Size = z.number().superRefine((cu, context) => {
  if (!isAllowedSize(cu)) context.addIssue({ code: 'custom', message: impossibleSizeText(cu) });
});

/** Shortest and longest timeout in seconds; 0 is the default and −1 never. */
const [SHORTEST_SECONDS, LONGEST_SECONDS] = [60, 604_800];

const Timeout = z.number().refine(isTimeout, {
  error: `must be -1 (never), 0 (the default) or whole seconds from ${SHORTEST_SECONDS} to ${LONGEST_SECONDS}`,
});

function isTimeout(seconds: number): boolean {
  if (seconds === 0 || seconds === -1) return true;
  return Number.isInteger(seconds) && seconds >= SHORTEST_SECONDS && seconds <= LONGEST_SECONDS;
}

const INSTANT_PROBLEM = { error: 'must be an ISO 8601 instant with its offset, e.g. 2026-01-31T08:00:00Z' };
const Instant = z.iso.datetime({ offset: true, ...INSTANT_PROBLEM }).transform((text) => Date.parse(text));

const SETTINGS = { min_cu: Size, max_cu: Size, suspend_timeout_seconds: Timeout };
const RANGE_PROBLEM = { error: 'min_cu must not be greater than max_cu' };
const isRange = ({ min_cu, max_cu }: { min_cu: number; max_cu: number }) => min_cu <= max_cu;

const SnapshotBranch = z.object({
  name: z.string(),
  default: z.boolean().default(false),
  protected: z.boolean().default(false),
  /** True for a branch with a parent. By default true for every branch but the default one. */
  child: z.boolean().optional(),
});
type SnapshotBranch = z.infer<typeof SnapshotBranch>;

const SnapshotCompute = z
  .object({
    id: Id,
    branch_id: Id,
    branch: SnapshotBranch.optional(),
    type: z.enum(['read_write', 'read_only']),
    ...SETTINGS,
    state: z.enum(COMPUTE_STATES),
    disabled: z.boolean().default(false),
    created_at: Instant.optional(),
    started_at: Instant.optional(),
    last_active: Instant.optional(),
    connections: z.int({ error: 'must be a whole number' }).min(0, { error: 'must be 0 or more' }).optional(),
    baseline: z.object(SETTINGS).refine(isRange, RANGE_PROBLEM).optional(),
  })
  .refine(isRange, RANGE_PROBLEM);
type SnapshotCompute = z.infer<typeof SnapshotCompute>;

const SnapshotProject = z.object({
  id: Id,
  /** Absent where it was not known when the file was made. */
  name: z.string().optional(),
  account: z.string().optional(),
  region_id: z.string(),
  pg_version: z.int({ error: 'must be a whole number' }).optional(),
  computes: z.array(SnapshotCompute),
});
type SnapshotProject = z.infer<typeof SnapshotProject>;

export const Snapshot = z.object({ taken_at: Instant.optional(), projects: z.array(SnapshotProject) });
type Snapshot = z.infer<typeof Snapshot>;
