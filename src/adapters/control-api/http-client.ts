import { constants } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { isLoopbackHost } from '../../common/loopback.ts';

/** Limits for the parts of an exchange, milliseconds; the call's deadline applies as well. */
export interface Timeouts {
  connectMs: number;
  /** From the request to the answer's headers. */
  headersMs: number;
  /** Between two pieces of the body. */
  bodyMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, headersMs: 10_000, bodyMs: 10_000 };

/** A page of 400 projects is about half a megabyte. */
export const DEFAULT_MAX_BODY_BYTES = 8 * 1024 * 1024;

/** The way to the API through a proxy. */
export interface ViaProxy {
  /** `http://[USER:PASSWORD@]HOST:PORT`, or https. */
  url: string;
  /** Hosts that are reached directly, as in NO_PROXY. */
  except: string;
}

/**
 * Enough for 40 requests a second to a service that takes 3 s for each. A request that waits for a connection would be sent later than the
 * rate budget has granted.
 */
const MAX_CONNECTIONS = 128;

/** Without renegotiation a certificate error comes before a connection's first request, so it shows that nothing was sent. */
const TLS = { secureOptions: constants.SSL_OP_NO_RENEGOTIATION };

/** Loading undici takes a tenth of a command's time, and most commands send nothing. A daemon loads it at its start, before the first deadline. */
export const loadHttpClient = () => import('undici');

/** A keep-alive pool. It ignores environment variables, and never uses a proxy for loopback. */
export async function createDispatcher(options: {
  baseUrl: URL;
  timeouts: Timeouts;
  maxBodyBytes: number;
  proxy?: ViaProxy | undefined;
}): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent } = await loadHttpClient();
  const { baseUrl, timeouts, maxBodyBytes, proxy } = options;
  const limits = {
    connections: MAX_CONNECTIONS,
    connect: { timeout: timeouts.connectMs, ...TLS },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    maxResponseSize: maxBodyBytes,
  };
  if (proxy === undefined || isLoopbackHost(baseUrl.hostname)) return new Agent(limits);
  const { url, except: noProxy } = proxy;
  return new EnvHttpProxyAgent({ ...limits, requestTls: TLS, httpProxy: url, httpsProxy: url, noProxy });
}
