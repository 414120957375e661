import { isLoopbackHost } from '../../common/loopback.ts';

/**
 * The base URL of a control API, without a slash at its end. Throws an Error whose message says what to do: not a URL, a
 * password, query or fragment in it, or plain http to another machine without `allowPlainHttp` (the key would be readable
 * on the way).
 */
export function parseBaseUrl(text: string, options: { allowPlainHttp?: boolean } = {}): URL {
  if (!URL.canParse(text)) throw new Error('The API URL is not a URL; it looks like https://console.neon.tech/api/v2.');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new Error(`The API URL must begin with https://, not ${url.protocol}//.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('The API URL must not hold a user or password; the key comes from EBB_API_KEY or a file.');
  }
  if (url.search !== '' || url.hash !== '') throw new Error('The API URL must end with its path, e.g. /api/v2.');
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname) && options.allowPlainHttp !== true) {
    throw new Error(`The API URL uses plain http to ${url.hostname}, which would show the key; use https://.`);
  }
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}
