import { isLoopbackHost } from '../common/loopback.ts';
import { didYouMean } from '../common/names.ts';
import { formatDuration } from '../domain/compute/compute-units.ts';
import {
  type ConnectionSource,
  countsConnections,
  DEFAULT_SOURCE_EVERY_MS,
  type PostgresSource,
  type SecretPlace,
} from '../domain/policy/policy.ts';
import { sum } from '../domain/sum.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../domain/time/units.ts';
import { PROMQL_STRING } from './kinds/guard.ts';
import type { PolicyProblem } from './problem.ts';
import type { WrittenPolicy } from './reader.ts';
import type { Source } from './schema/source.ts';

/** The sources of the settings, and the permissions for sources of policy files. */
export interface KnownSources {
  sources: ReadonlyMap<string, ConnectionSource>;
  /** Origins such as `https://prometheus.example`. */
  allowedOrigins: readonly string[];
  /** Origins that may get a bearer token of this machine; files can't allow them. */
  tokenOrigins?: readonly string[];
}

export const NO_SOURCES: KnownSources = { sources: new Map(), allowedOrigins: [] };

/** A source of a policy file. */
export interface WrittenSource {
  /** The name in the file, without that of the team. */
  name: string;
  source: ConnectionSource;
  problemAt: WrittenPolicy['problemAt'];
}

export function toSource(name: string, file: string, written: Source): ConnectionSource {
  const base = { name, file, everyMs: written.every ?? DEFAULT_SOURCE_EVERY_MS };
  if (written.from === 'postgres') return { ...base, from: 'postgres', dsn: dsnOf(written) };
  const { url, query, token_env, token_file } = written;
  const token = secretPlace(token_env, token_file);
  return { ...base, from: 'prometheus', url, ...(query !== undefined && { query }), ...(token && { token }) };
}

function dsnOf({ dsn = '', dsn_env, dsn_file }: Extract<Source, { from: 'postgres' }>): PostgresSource['dsn'] {
  return secretPlace(dsn_env, dsn_file) ?? { from: 'text', text: dsn };
}

export function secretPlace(name: string | undefined, path: string | undefined): SecretPlace | undefined {
  if (name !== undefined) return { from: 'variable', name };
  return path === undefined ? undefined : { from: 'file', path };
}

/**
 * Refuses a source of a policy file that would reach more than the settings allow. A connection string may not name a host, as
 * the passwords of this machine would be sent there.
 */
function withPermission(source: ConnectionSource, known: Omit<KnownSources, 'sources'>): ConnectionSource {
  const refused =
    source.from === 'prometheus' ? originRefused(source.url, known.allowedOrigins) : hostRefused(source.dsn);
  return refused === undefined ? withTokenPermission(source, known.tokenOrigins) : { ...source, refused };
}

/**
 * Refuses a source that would send a bearer token to an origin that only files name, since anybody can write a file that is checked out
 * here. This machine is always allowed as an origin.
 */
export function withTokenPermission(source: ConnectionSource, tokenOrigins: readonly string[] = []): ConnectionSource {
  if (source.from !== 'prometheus' || source.token === undefined) return source;
  const { origin, hostname } = new URL(source.url);
  if (isLoopbackHost(hostname) || tokenOrigins.includes(origin)) return source;
  const refused = `it would send a bearer token to ${origin}, which a file may not decide: set EBB_SOURCES_ALLOWED_ORIGINS=${origin}`;
  return { ...source, refused };
}

function originRefused(url: string, allowedOrigins: readonly string[]): string | undefined {
  const { origin } = new URL(url);
  if (allowedOrigins.includes(origin)) return undefined;
  return `${origin} is not allowed: add it to sources_allowed_origins in ebb.yaml, or define the source there`;
}

function hostRefused(dsn: PostgresSource['dsn']): string | undefined {
  if (dsn.from !== 'text' || /^postgres(ql)?:\/\/([^/@]*@)?\$host(:\d+)?(\/|$)/.test(dsn.text)) return undefined;
  return 'a dsn names $host and no other host; use dsn_env or dsn_file, or define the source in ebb.yaml';
}

/** All sources by name; those of the settings take precedence. */
export function gatherSources(
  written: readonly WrittenSource[],
  known: KnownSources,
): { sources: Map<string, ConnectionSource>; problems: PolicyProblem[] } {
  const sources = new Map(known.sources);
  const problems: PolicyProblem[] = [];
  for (const { name, source, problemAt } of written) {
    const first = sources.get(source.name);
    if (first === undefined) sources.set(source.name, withPermission(source, known));
    else {
      const message = `the source "${name}" is already defined in ${first.file}`;
      problems.push(problemAt(['sources', name], 'duplicate-name', message));
    }
  }
  return { sources, problems };
}

/** The full name of the source that a policy names: a source of its team or, without one, a source without a team. */
export function sourceName(sources: ReadonlyMap<string, unknown>, team: string | undefined, name: string): string {
  const ofTeam = `${team}/${name}`;
  return team !== undefined && sources.has(ofTeam) ? ofTeam : name;
}

function namedSource({ at, valueAt }: WrittenPolicy): { key: 'connections' | 'source'; name: string } | undefined {
  for (const key of ['connections', 'source'] as const) {
    const name = valueAt([...at, key]);
    if (typeof name === 'string') return { key, name };
  }
  return undefined;
}

/** Problems of policies whose source is not defined, not suitable, or polled too rarely for the query. */
export function unusableSources(
  written: readonly WrittenPolicy[],
  sources: ReadonlyMap<string, ConnectionSource>,
): PolicyProblem[] {
  const names = [...sources.keys()];
  return written.flatMap((policy) => {
    const named = namedSource(policy);
    if (!named) return [];
    const { at, team, problemAt } = policy;
    const { key, name } = named;
    const source = sources.get(sourceName(sources, team, name));
    const list = names.length > 0 ? `; there are ${names.slice(0, 20).join(', ')}` : '; there are no "sources"';
    const message = source
      ? whyUnusable(source, key)
      : `no source is named ${JSON.stringify(name.slice(0, 60))}${didYouMean(name, names) || list}`;
    if (message !== undefined) return [problemAt([...at, key], 'value', message)];
    const tooShort = source && key === 'source' ? tooShortWindow(source, policy) : undefined;
    return tooShort === undefined ? [] : [problemAt([...at, 'query'], 'value', tooShort)];
  });
}

function whyUnusable(source: ConnectionSource, key: 'connections' | 'source'): string | undefined {
  if (key === 'connections') {
    if (countsConnections(source)) return undefined;
    return `"${source.name}" has no query, so it counts no connections; add a query to the source`;
  }
  return source.from === 'postgres'
    ? `"${source.name}" is from postgres; a guard asks a source from prometheus`
    : undefined;
}

function tooShortWindow(source: ConnectionSource, { at, valueAt }: WrittenPolicy): string | undefined {
  const query = valueAt([...at, 'query']);
  const windowMs = typeof query === 'string' ? shortestWindowMs(query) : undefined;
  const leastMs = SAMPLES_IN_WINDOW * source.everyMs;
  if (windowMs === undefined || windowMs >= leastMs) return undefined;
  const [window, every, least] = [windowMs, source.everyMs, leastMs].map((ms) => formatDuration(ms / 1000));
  return `the query has a window of ${window}, but "${source.name}" has new values every ${every}, and a rate needs two: use [${least}] or longer, or write every: at the source`;
}

/** A rate has no value with fewer samples in its window. Other functions need only one sample. */
const SAMPLES_IN_WINDOW = 2;
const RATES =
  /\b(?:rate|irate|increase|delta|idelta|deriv|predict_linear)\s*\([^()[\]]*\[\s*((?:\d+(?:ms|[smhdwy]))+)\s*\]/g;

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  y: 365 * DAY_MS,
};

/** The shortest window of which a query takes a rate, in milliseconds; undefined if it has none. */
function shortestWindowMs(query: string): number | undefined {
  const code = query.replace(PROMQL_STRING, '""');
  const windows = [...code.matchAll(RATES)].map(([, text = '']) =>
    sum(
      [...text.matchAll(/(\d+)(ms|[smhdwy])/g)].map(([, number, unit = '']) => Number(number) * (UNIT_MS[unit] ?? 0)),
    ),
  );
  return windows.length === 0 ? undefined : Math.min(...windows);
}

/** Warnings for enabled policies whose source is refused. */
export function refusedSources(
  written: readonly WrittenPolicy[],
  sources: ReadonlyMap<string, ConnectionSource>,
): PolicyProblem[] {
  return written.flatMap((policy) => {
    const named = namedSource(policy);
    const { at, team, valueAt, problemAt } = policy;
    const refused = named && sources.get(sourceName(sources, team, named.name))?.refused;
    if (!named || refused === undefined || valueAt([...at, 'enabled']) === false) return [];
    return [problemAt([...at, named.key], 'value', `this source is never asked: ${refused}`)];
  });
}
