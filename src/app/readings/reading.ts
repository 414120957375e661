/** Encodes and decodes shared readings: each project's computes, as a daemon has read them, in one document in the store. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { BRANCH_ROLES, COMPUTE_STATES, type Compute } from '../../domain/compute/compute.ts';
import type { Project, UnreadableCompute } from '../../ports/control-api.ts';

export interface SharedReading {
  project: Project;
  computes: readonly Compute[];
  unreadable: readonly UnreadableCompute[];
  /** True if the key may not list the project's branches. */
  branchesRefused: boolean;
  /**
   * By compute id, the last write that the reading includes: `lastSentAtMs` of the record when the reading began, if no write was pending. If
   * the record has another value now, the reading may lack the compute's last write.
   */
  includedWrites: ReadonlyMap<string, number>;
  /** When the reading began, by the store's clock, milliseconds since the epoch. */
  readAtMs: number;
}

/** The last complete list of an account's projects. */
export interface AccountSurvey {
  /** The URL of the control API that was asked. */
  apiUrl: string;
  /** When the list was requested, by the store's clock, milliseconds since the epoch. */
  listedAtMs: number;
  /** The digest of the ids of the listed projects, see {@link digestOf}. */
  projects: string;
  /** When the oldest reading of these projects began, by the store's clock, milliseconds since the epoch; absent if none was read. */
  oldestReadAtMs?: number;
}

/** The version of the documents. Raise it with each change of their form: documents of another version count as absent. */
const VERSION = 1;

/** Operations are stored like usage, as bytes by project, under this name. Usage has other names: `ACCOUNT/ORGANIZATION`. */
export const OPERATIONS_KEY = 'operations';

/** The number of collections of readings, so that a large fleet is read in pages. */
const SHARDS = 32;

/** The last survey of each account, one document each. */
export const SURVEYS_COLLECTION = 'readings-seen';

/** The ids of the listed projects of each account, one document each; written when they change. */
export const LISTS_COLLECTION = 'readings-lists';

/** The collections of the readings: `readings-00` to `readings-1f`. */
export const READING_COLLECTIONS: readonly string[] = Array.from({ length: SHARDS }, (_, shard) => collection(shard));

/** Returns the collection that has the reading of a project, by a hash of the project's id. */
export function readingCollection(projectId: string): string {
  return collection((createHash('sha256').update(projectId).digest()[0] ?? 0) % SHARDS);
}

function collection(shard: number): string {
  return `readings-${shard.toString(16).padStart(2, '0')}`;
}

/** Returns a digest of project ids, which depends on their order. */
export function digestOf(projectIds: Iterable<string>): string {
  return createHash('sha256')
    .update([...projectIds].join('\n'))
    .digest('base64url');
}

/** Encodes a reading. Without `readAtMs`, readings with the same content have the same text. */
export function readingText({ readAtMs, ...reading }: Omit<SharedReading, 'readAtMs'> & { readAtMs?: number }): string {
  const { project, computes, unreadable, branchesRefused, includedWrites } = reading;
  return JSON.stringify({
    v: VERSION,
    t: readAtMs,
    p: projectPart(project),
    c: computes.map((compute) => computePart(compute, includedWrites.get(compute.computeId))),
    ...(unreadable.length > 0 && { x: unreadable.map(({ computeId, message }) => ({ i: computeId, m: message })) }),
    ...(branchesRefused && { f: 1 }),
  } satisfies z.input<typeof ReadingForm> | { t: number | undefined });
}

/** Decodes a reading; undefined if the text is damaged or of another version. */
export function parseReading(text: string): SharedReading | undefined {
  const parsed = ReadingForm.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { t: readAtMs, p, c, x, f } = parsed.data;
  const project = projectOf(p);
  return {
    project,
    computes: c.map((part) => computeOf(project, part)),
    unreadable: x.map(({ i, m: message }) => ({ message, ...(i !== undefined && { computeId: i }) })),
    branchesRefused: f === 1,
    includedWrites: new Map(c.flatMap(({ i, w }) => (w === undefined ? [] : [[i, w] as const]))),
    readAtMs,
  };
}

export function surveyText({ apiUrl, listedAtMs, projects, oldestReadAtMs }: AccountSurvey): string {
  return JSON.stringify({ v: VERSION, a: apiUrl, t: listedAtMs, p: projects, o: oldestReadAtMs } satisfies z.input<
    typeof SurveyForm
  >);
}

/** Encodes the ids of an account's projects in the order in which the API lists them; commands show fleets in this order. */
export function listText(projectIds: Iterable<string>): string {
  return JSON.stringify({ v: VERSION, p: [...projectIds] } satisfies z.input<typeof ListForm>);
}

/** Decodes the ids of listed projects; undefined if the text is damaged or of another version. */
export function parseList(text: string): string[] | undefined {
  return ListForm.safeParse(parseJson(text)).data?.p;
}

/** Decodes a survey; undefined if the text is damaged or of another version. */
export function parseSurvey(text: string): AccountSurvey | undefined {
  const parsed = SurveyForm.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { a: apiUrl, t: listedAtMs, p: projects, o: oldestReadAtMs } = parsed.data;
  return { apiUrl, listedAtMs, projects, ...(oldestReadAtMs !== undefined && { oldestReadAtMs }) };
}

/** The stored form of a compute. Its keys are short (see {@link computePart}), since the store has this form for each compute of the fleet. */
const ComputeForm = z.object({
  i: z.string(),
  b: z.string(),
  /** Name and roles of the branch, where they are known. */
  bn: z.string().optional(),
  br: z.array(z.enum(BRANCH_ROLES)).optional(),
  /** Read-only. */
  r: z.literal(1).optional(),
  /** Least and most CU, and the timeout in seconds. */
  s: z.tuple([z.number(), z.number(), z.number()]),
  e: z.enum(COMPUTE_STATES),
  /** The pending state. */
  n: z.enum(COMPUTE_STATES).optional(),
  d: z.literal(1).optional(),
  h: z.string().optional(),
  /** Created, updated, started, last active. */
  c: z.number(),
  u: z.number().optional(),
  a: z.number().optional(),
  l: z.number().optional(),
  /** The included write. */
  w: z.number().optional(),
});
type ComputePart = z.input<typeof ComputeForm>;

const ProjectForm = z.object({
  a: z.string(),
  i: z.string(),
  n: z.string(),
  /** The name is not known. */
  k: z.literal(1).optional(),
  r: z.string(),
  u: z.number(),
  l: z.number().optional(),
  v: z.number().optional(),
  o: z.string().optional(),
});
type ProjectPart = z.input<typeof ProjectForm>;

const ReadingForm = z.object({
  v: z.literal(VERSION),
  t: z.number(),
  p: ProjectForm,
  c: z.array(ComputeForm),
  x: z.array(z.object({ i: z.string().optional(), m: z.string() })).default([]),
  /** Branches are refused. */
  f: z.literal(1).optional(),
});

const ListForm = z.object({ v: z.literal(VERSION), p: z.array(z.string()) });

const SurveyForm = z.object({
  v: z.literal(VERSION),
  a: z.string(),
  t: z.number(),
  p: z.string(),
  o: z.number().optional(),
});

function projectPart(project: Project): ProjectPart {
  const { account, projectId, name, nameUnknown, regionId, updatedAtMs } = project;
  const { computeLastActiveAtMs, pgVersion, organizationId } = project;
  return {
    a: account,
    i: projectId,
    n: name,
    r: regionId,
    u: updatedAtMs,
    ...(nameUnknown && { k: 1 }),
    ...(computeLastActiveAtMs !== undefined && { l: computeLastActiveAtMs }),
    ...(pgVersion !== undefined && { v: pgVersion }),
    ...(organizationId !== undefined && { o: organizationId }),
  };
}

function projectOf({ a, i, n, k, r, u, l, v, o }: z.output<typeof ProjectForm>): Project {
  return {
    account: a,
    projectId: i,
    name: n,
    regionId: r,
    updatedAtMs: u,
    ...(k && { nameUnknown: true }),
    ...(l !== undefined && { computeLastActiveAtMs: l }),
    ...(v !== undefined && { pgVersion: v }),
    ...(o !== undefined && { organizationId: o }),
  };
}

function computePart(compute: Compute, includedWrite: number | undefined): ComputePart {
  const { branchName, branchRoles, minCu, maxCu, suspendTimeoutSeconds, pendingState, host } = compute;
  const { updatedAtMs, startedAtMs, lastActiveAtMs } = compute;
  return {
    i: compute.computeId,
    b: compute.branchId,
    s: [minCu, maxCu, suspendTimeoutSeconds],
    e: compute.state,
    ...(branchName !== undefined && { bn: branchName }),
    ...(branchRoles && { br: [...branchRoles] }),
    ...(compute.type === 'read_only' && { r: 1 }),
    ...(pendingState !== undefined && { n: pendingState }),
    ...(compute.disabled && { d: 1 }),
    ...(host !== undefined && { h: host }),
    c: compute.createdAtMs,
    ...(updatedAtMs !== undefined && { u: updatedAtMs }),
    ...(startedAtMs !== undefined && { a: startedAtMs }),
    ...(lastActiveAtMs !== undefined && { l: lastActiveAtMs }),
    ...(includedWrite !== undefined && { w: includedWrite }),
  };
}

function computeOf(project: Project, part: z.output<typeof ComputeForm>): Compute {
  const [minCu, maxCu, suspendTimeoutSeconds] = part.s;
  const { bn: branchName, br: branchRoles, n: pendingState, h: host, u, a, l } = part;
  return {
    account: project.account,
    projectId: project.projectId,
    projectName: project.name,
    ...(project.nameUnknown && { projectNameUnknown: true }),
    computeId: part.i,
    branchId: part.b,
    regionId: project.regionId,
    ...(branchName !== undefined && { branchName }),
    ...(branchRoles && { branchRoles }),
    type: part.r ? 'read_only' : 'read_write',
    minCu,
    maxCu,
    suspendTimeoutSeconds,
    state: part.e,
    ...(pendingState !== undefined && { pendingState }),
    disabled: part.d === 1,
    ...(host !== undefined && { host }),
    createdAtMs: part.c,
    ...(u !== undefined && { updatedAtMs: u }),
    ...(a !== undefined && { startedAtMs: a }),
    ...(l !== undefined && { lastActiveAtMs: l }),
  };
}
