import { isLoopbackHost } from '../common/loopback.ts';
import type { Result } from '../common/result.ts';
import { asWrittenAndDecoded, type Secret, secret } from './secret.ts';

const VERSION_SEGMENT = '/api/v2';

/** Parses the base URL of the control API and removes a trailing slash. Problems never contain its user part. */
export function parseApiUrl(text: string): Result<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    return { ok: false, problem: 'is not an http or https URL; write for example https://console.neon.tech/api/v2' };
  }
  if (url.username !== '' || url.password !== '') {
    const problem = 'must not hold a user or password; the key comes from EBB_API_KEY or EBB_API_KEY_FILE';
    return { ok: false, problem };
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (!path.endsWith(VERSION_SEGMENT) || url.search !== '' || url.hash !== '') {
    const problem = `"${text}" must end in ${VERSION_SEGMENT}; write for example ${url.origin}${VERSION_SEGMENT}`;
    return { ok: false, problem };
  }
  return { ok: true, value: `${url.origin}${path}` };
}

/** True if a key sent to this URL would cross a network unencrypted. */
export function isPlainAndRemote(apiUrl: string): boolean {
  const url = new URL(apiUrl);
  return url.protocol === 'http:' && !isLoopbackHost(url.hostname);
}

export interface ListenAddress {
  /** A name or an address without brackets. */
  host: string;
  /** 0..65535; 0 lets the system choose. */
  port: number;
}

const HOST_AND_PORT = /^(?:\[(?<ipv6>[0-9a-f:.]+)\]|(?<host>[^:[\]\s/]+)):(?<port>\d{1,5})$/i;

/** Parses `HOST:PORT` or `[IPV6]:PORT`. */
export function parseListenAddress(text: string): Result<ListenAddress> {
  const match = HOST_AND_PORT.exec(text.trim());
  const host = match?.groups?.ipv6 ?? match?.groups?.host;
  const port = Number(match?.groups?.port);
  if (host === undefined || !(port <= 65_535)) {
    return { ok: false, problem: `"${text}" is not HOST:PORT; write for example 127.0.0.1:9464 or 0.0.0.0:9464` };
  }
  return { ok: true, value: { host, port } };
}

export interface QueueLocation {
  kind: 'embedded' | 'redis' | 'postgres';
  /**
   * `embedded:DIR`, `redis://…`, `redis+sentinel://…`, `redis+cluster://…` (each with `rediss` for TLS), `postgres://…`. Secret, since it may
   * contain a password.
   */
  url: Secret;
  /** Without user and password, for people. */
  shown: string;
  /** Each password of the URL, as written and as decoded. */
  passwords: readonly Secret[];
}

const KINDS: ReadonlyMap<string, QueueLocation['kind']> = new Map([
  ['redis', 'redis'],
  ['rediss', 'redis'],
  ['redis+sentinel', 'redis'],
  ['rediss+sentinel', 'redis'],
  ['redis+cluster', 'redis'],
  ['rediss+cluster', 'redis'],
  ['postgres', 'postgres'],
  ['postgresql', 'postgres'],
]);
const QUEUE_URL_FORM = 'write embedded:DIR, redis://HOST:PORT, rediss://HOST:PORT or postgres://HOST/DATABASE';
const SENTINEL_URL_FORM =
  'write redis+sentinel://HOST:PORT,HOST:PORT/NAME with the name that the Sentinels watch it under';
const PASSWORD_PARAMETER = /[?&](?:sentinel_)?(?:password|pass|auth)=([^&#]*)/gi;

/** Parses the address of queue and store. Problems never contain the address, since it may have a password. */
export function parseQueueUrl(text: string): Result<QueueLocation> {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(text.trim()) ?? [];
  if (scheme.toLowerCase() === 'embedded') return embedded(rest);
  const kind = KINDS.get(scheme.toLowerCase());
  if (kind === undefined) {
    const problem = scheme === '' ? 'is not a URL' : `doesn't know the scheme "${scheme}"`;
    return { ok: false, problem: `${problem}; ${QUEUE_URL_FORM}` };
  }
  const { user, location } = splitUserPart(rest.startsWith('//') ? rest.slice(2) : '');
  if (location === '') return { ok: false, problem: `names no host; ${QUEUE_URL_FORM}` };
  const isSentinel = /\+sentinel$/i.test(scheme);
  if (isSentinel && !/^[^/?#]+\/[^/?#]/.test(location)) {
    return { ok: false, problem: `names no primary; ${SENTINEL_URL_FORM}` };
  }
  const shown = `${scheme}://${redactParameters(location)}`;
  const passwords = [...passwordsOf(user), ...parameterPasswords(location)].map(secret);
  return { ok: true, value: { kind, url: secret(text.trim()), shown, passwords } };
}

function embedded(dir: string): Result<QueueLocation> {
  if (dir === '' || dir.startsWith('//'))
    return { ok: false, problem: 'names no folder; write for example embedded:.ebb' };
  return {
    ok: true,
    value: { kind: 'embedded', url: secret(`embedded:${dir}`), shown: `embedded:${dir}`, passwords: [] },
  };
}

/** `location` is hosts, path and query. The user part extends to the last `@`, so that a password with a stray `/` or `@` stays hidden. */
function splitUserPart(rest: string): { user: string; location: string } {
  const at = rest.lastIndexOf('@');
  return { user: rest.slice(0, Math.max(at, 0)), location: rest.slice(at + 1) };
}

function passwordsOf(user: string): string[] {
  const colon = user.indexOf(':');
  return colon < 0 ? [] : asWrittenAndDecoded(user.slice(colon + 1));
}

function redactParameters(location: string): string {
  return location.replace(
    PASSWORD_PARAMETER,
    (match, value: string) => `${match.slice(0, match.length - value.length)}[redacted]`,
  );
}

function parameterPasswords(location: string): string[] {
  return [...location.matchAll(PASSWORD_PARAMETER)].flatMap(([, value = '']) => asWrittenAndDecoded(value));
}
