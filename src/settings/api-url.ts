import { isLoopbackHost } from '../common/loopback.ts';
import type { Parsed } from './parsed.ts';

const VERSION_SEGMENT = '/api/v2';

/** Reads the base URL of the control API; the result has no trailing slash. What is wrong is said without the URL's user part. */
export function parseApiUrl(text: string): Parsed<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    return { ok: false, problem: 'is not an http or https URL; write for example https://console.neon.tech/api/v2' };
  }
  if (url.username !== '' || url.password !== '') {
    return {
      ok: false,
      problem: 'must not hold a user or password; the key comes from EBB_API_KEY or EBB_API_KEY_FILE',
    };
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (!path.endsWith(VERSION_SEGMENT) || url.search !== '' || url.hash !== '') {
    return {
      ok: false,
      problem: `"${text}" must end in ${VERSION_SEGMENT}; write for example ${url.origin}${VERSION_SEGMENT}`,
    };
  }
  return { ok: true, value: `${url.origin}${path}` };
}

/** True if a key sent to this URL would cross a network unencrypted. */
export function isPlainAndRemote(apiUrl: string): boolean {
  const url = new URL(apiUrl);
  return url.protocol === 'http:' && !isLoopbackHost(url.hostname);
}
