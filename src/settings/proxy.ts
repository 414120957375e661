import { isLoopbackHost } from '../common/loopback.ts';
import type { Result } from '../common/result.ts';
import { asWrittenAndDecoded, type Secret, secret } from './secret.ts';
import type { Environment } from './sources.ts';

/** The proxy for requests to the control API. */
export interface ProxySetting {
  /** Secret, since it may contain a password. */
  url: Secret;
  /** Without user and password, for people. */
  shown: string;
  /** The environment variable that holds the URL. */
  variable: string;
  /** The password, or else the user, which may be a token; as written and as decoded. */
  passwords: readonly Secret[];
  /** Hosts that are reached directly, as in NO_PROXY. */
  except: string;
}

const HAS_SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * Finds the proxy for an API URL in the usual variables. Lowercase ones take precedence. An API on this machine has no proxy. Problems never
 * contain the proxy's URL.
 */
export function findProxy(env: Environment, apiUrl: string): Result<ProxySetting | undefined> {
  const { protocol, hostname } = new URL(apiUrl);
  const names = protocol === 'https:' ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY'];
  const variable = names.find((name) => env[name]);
  const written = variable === undefined ? undefined : env[variable];
  if (variable === undefined || written === undefined || isLoopbackHost(hostname))
    return { ok: true, value: undefined };
  const text = HAS_SCHEME.test(written) ? written.trim() : `http://${written.trim()}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !isUsable(url)) {
    const problem = `${variable}: is not the URL of an http proxy; write for example http://proxy.example:3128, or unset it`;
    return { ok: false, problem };
  }
  const hidden = asWrittenAndDecoded(url.password === '' ? url.username : url.password);
  const value: ProxySetting = {
    url: secret(text),
    shown: url.origin,
    variable,
    passwords: hidden.map(secret),
    except: env.no_proxy || env.NO_PROXY || '',
  };
  return { ok: true, value };
}

function isUsable({ protocol, username, password }: URL): boolean {
  if (protocol !== 'http:' && protocol !== 'https:') return false;
  try {
    decodeURIComponent(`${username}:${password}`);
    return true;
  } catch {
    return false;
  }
}
