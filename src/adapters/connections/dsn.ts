import { readFile } from 'node:fs/promises';
import type { ClientConfig } from 'pg';
import { isLoopbackHost } from '../../common/loopback.ts';
import { failed, type Read } from './outcomes.ts';

const HOST = /^[A-Za-z0-9.-]+$/;
const VERIFIED = ['require', 'verify-ca', 'verify-full'];
const KNOWN = new Set(['sslmode', 'sslrootcert']);
const EXPECTED = 'expected postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE';

/**
 * What a connection string says, with `$host` replaced. TLS is verified, whatever word for it is used; a server on this machine needs
 * none. Messages never hold the string.
 */
export async function readDsn(text: string, host: string | undefined): Promise<Read<ClientConfig>> {
  if (text.includes('$host') && (host === undefined || !HOST.test(host))) {
    return failed('misconfigured', 'the control API gives no host for $host');
  }
  const dsn = text.replaceAll('$host', host ?? '');
  const url = /^postgres(ql)?:\/\//.test(dsn) && URL.canParse(dsn) ? new URL(dsn) : undefined;
  if (url === undefined || url.hostname === '') return failed('misconfigured', `no connection string: ${EXPECTED}`);
  const unknown = [...url.searchParams.keys()].find((key) => !KNOWN.has(key));
  if (unknown !== undefined)
    return failed('misconfigured', `the connection string may say sslmode and sslrootcert only`);
  const tls = await tlsOf(url);
  if (!tls.ok) return tls;
  const config = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 5432 : Number(url.port),
    user: decoded(url.username),
    database: decoded(url.pathname.slice(1)) || 'postgres',
    ssl: tls.value,
    // Without one Postgres' own places count: PGPASSWORD, or the password file.
    ...(url.password !== '' && { password: decoded(url.password) }),
  };
  return { ok: true, value: config };
}

async function tlsOf({ hostname, searchParams }: URL): Promise<Read<NonNullable<ClientConfig['ssl']>>> {
  const isLocal = isLoopbackHost(hostname);
  const mode = searchParams.get('sslmode') ?? (isLocal ? 'disable' : 'verify-full');
  if (mode === 'disable' && isLocal) return { ok: true, value: false };
  if (!VERIFIED.includes(mode)) {
    return failed('tls', 'sslmode must be verify-full (or require, which means the same here) beyond this machine');
  }
  const file = searchParams.get('sslrootcert');
  if (file === null || file === 'system') return { ok: true, value: { rejectUnauthorized: true } };
  try {
    return { ok: true, value: { rejectUnauthorized: true, ca: await readFile(file, 'utf8') } };
  } catch {
    return failed('misconfigured', 'the file that sslrootcert names can not be read');
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
