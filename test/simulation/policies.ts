/** Policy sets of the simulation, twice: as plain data, which the oracle reads, and as the YAML that ebb reads. */

import type { ConnectionSource } from '../../src/domain/policy/policy.ts';
import { type PolicySetResult, parsePolicyFiles } from '../../src/policy/parse.ts';
import type { Team } from '../../src/policy/teams.ts';

/** CU of both ends. */
export type SimSize = readonly [minCu: number, maxCu: number];

export interface SimValues {
  size?: SimSize;
  /** −1: never. */
  suspendSeconds?: number;
}

export interface SimWindow extends SimValues {
  fromMs: number;
  toMs: number;
}

interface SimBase {
  name: string;
  /** Globs on names; `*` alone, or `PREFIX-*`. */
  projects: readonly string[];
  /** It selects by branch, too: all of them, so that ebb reads them. */
  byBranch?: boolean;
}

export interface SimSchedule extends SimBase {
  kind: 'schedule';
  priority: number;
  windows: readonly SimWindow[];
  otherwise: 'leave' | 'baseline' | SimValues;
}

export interface SimLimits extends SimBase {
  kind: 'limits';
  maxCu: number;
  hard: boolean;
}

export interface SimFreeze extends SimBase {
  kind: 'freeze';
  fromMs: number;
  toMs: number;
}

/** Bad while a compute's demand is more than its maximum; see series.ts. */
export interface SimGuard extends SimBase {
  kind: 'guard';
  remedy: 'notify' | 'undo' | 'undo_with_restart';
}

export type SimPolicy = SimSchedule | SimLimits | SimFreeze | SimGuard;

/** Durations of all guards, in milliseconds. */
export const GUARD_TIMES = { forMs: 60_000, watchMs: 180_000 } as const;

/** The source of all guards, which the settings define. */
const SOURCE: ConnectionSource = {
  ...{ name: 'main', file: 'ebb.yaml', everyMs: 15_000 },
  ...{ from: 'prometheus', url: 'http://127.0.0.1:9090' },
};

/** The files: those of no team, and those of the one team. */
export const FILES = ['platform', 'web'] as const;
export type FileName = (typeof FILES)[number];

export const TEAM: Team = { name: 'team-web', policies: ['policies/web'], projects: ['web-*'] };
const PATHS: Readonly<Record<FileName, string>> = {
  platform: 'policies/platform.yaml',
  web: 'policies/web/schedules.yaml',
};

/** The files of one moment, by name; undefined for one that was never there. */
export type SimFiles = Readonly<Record<FileName, readonly SimPolicy[]>>;

const instant = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z');
const size = ([minCu, maxCu]: SimSize) => (minCu === maxCu ? `${minCu}` : `${minCu}-${maxCu}`);
const timeout = (seconds: number) => (seconds === -1 ? 'never' : `${seconds}s`);

function values({ size: wanted, suspendSeconds }: SimValues): string {
  return [
    ...(wanted ? [`size: ${size(wanted)}`] : []),
    ...(suspendSeconds === undefined ? [] : [`suspend_after: ${timeout(suspendSeconds)}`]),
  ].join(', ');
}

function body(policy: SimPolicy): string[] {
  if (policy.kind === 'limits') return [`size: { max: ${policy.maxCu} }`, `hard: ${policy.hard}`];
  if (policy.kind === 'freeze') return [`at: ${instant(policy.fromMs)}/${instant(policy.toMs)}`];
  if (policy.kind === 'guard') {
    return [
      ...['source: main', `query: ${policy.name}`, 'match: { compute: "{compute_id}" }', 'bad_when: "> 1"'],
      ...[`for: ${GUARD_TIMES.forMs / 1000}s`, `watch: ${GUARD_TIMES.watchMs / 1000}s`, 'settle: 0s'],
      `then: ${policy.remedy}`,
    ];
  }
  const { priority, windows, otherwise } = policy;
  return [
    `priority: ${priority}`,
    'windows:',
    ...windows.map((one) => `  - { at: "${instant(one.fromMs)}/${instant(one.toMs)}", ${values(one)} }`),
    `otherwise: ${typeof otherwise === 'string' ? otherwise : `{ ${values(otherwise)} }`}`,
  ];
}

const branchesOf = ({ byBranch }: SimPolicy) => (byBranch ? 'branches: ["*"], ' : '');

export function textOf(policies: readonly SimPolicy[]): string {
  const entries = policies.flatMap((policy) => [
    `  - name: ${policy.name}`,
    `    kind: ${policy.kind}`,
    `    select: { projects: [${policy.projects.map((glob) => `"${glob}"`).join(', ')}], ${branchesOf(policy)}min_age: 1m }`,
    ...body(policy).map((line) => `    ${line}`),
  ]);
  return ['version: 1', 'policies:', ...entries, ''].join('\n');
}

/** Texts of the first file whose results are kept: a run has fewer. */
const MOST_PARSED = 50;

/** By the text of the first file, and then of the second: asked for often, and a key of both would have to be made each time. */
const parsed = new Map<string, Map<string, PolicySetResult>>();

/** As the daemon's loader does, from texts that are read already; the same texts are parsed once. */
export function parseTexts({ platform, web }: Readonly<Record<FileName, string>>): PolicySetResult {
  const known = parsed.get(platform)?.get(web);
  if (known) return known;
  const files = [
    { path: PATHS.platform, text: platform },
    { path: PATHS.web, text: web, team: TEAM },
  ];
  const knownSources = { sources: new Map([[SOURCE.name, SOURCE]]), allowedOrigins: [] };
  const result = parsePolicyFiles(files, { knownSources });
  if (parsed.size >= MOST_PARSED) parsed.clear();
  const byWeb = parsed.get(platform) ?? new Map<string, PolicySetResult>();
  parsed.set(platform, byWeb.set(web, result));
  return result;
}

export function pathOf(name: FileName): string {
  return PATHS[name];
}

/** Stands for lints: something to say of some files. */
export function warningsOf(texts: Readonly<Record<FileName, string>>): string[] {
  return FILES.filter((name) => texts[name].includes('hard: true')).map((name) => `${name} has a hard limit`);
}
