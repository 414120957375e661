/** Policy sets of the simulation, twice: as plain data, which the oracle reads, and as the YAML that ebb reads. */

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

export type SimPolicy = SimSchedule | SimLimits | SimFreeze;

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
  const { priority, windows, otherwise } = policy;
  return [
    `priority: ${priority}`,
    'windows:',
    ...windows.map((one) => `  - { at: "${instant(one.fromMs)}/${instant(one.toMs)}", ${values(one)} }`),
    `otherwise: ${typeof otherwise === 'string' ? otherwise : `{ ${values(otherwise)} }`}`,
  ];
}

export function textOf(policies: readonly SimPolicy[]): string {
  const entries = policies.flatMap((policy) => [
    `  - name: ${policy.name}`,
    `    kind: ${policy.kind}`,
    `    select: { projects: [${policy.projects.map((glob) => `"${glob}"`).join(', ')}], min_age: 1m }`,
    ...body(policy).map((line) => `    ${line}`),
  ]);
  return ['version: 1', 'policies:', ...entries, ''].join('\n');
}

/** Results that are kept: a run has fewer. */
const MOST_PARSED = 200;

const parsed = new Map<string, PolicySetResult>();

/** As the daemon's loader does, from texts that are read already; the same texts are parsed once. */
export function parseTexts({ platform, web }: Readonly<Record<FileName, string>>): PolicySetResult {
  const key = JSON.stringify([platform, web]);
  const known = parsed.get(key);
  if (known) return known;
  const result = parsePolicyFiles([
    { path: PATHS.platform, text: platform },
    { path: PATHS.web, text: web, team: TEAM },
  ]);
  if (parsed.size >= MOST_PARSED) parsed.clear();
  parsed.set(key, result);
  return result;
}

export function pathOf(name: FileName): string {
  return PATHS[name];
}
