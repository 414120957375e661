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
 * More than are ever needed, since a request that waits for a connection is sent later than the rate budget granted. A service that takes
 * 3 s for each of 40 requests a second needs 120.
 */
const MAX_CONNECTIONS = 128;

/** A certificate is verified before the first request of a connection, and never after one, which may have had an effect. */
const TLS = { secureOptions: constants.SSL_OP_NO_RENEGOTIATION };

/**
 * Loads undici when it is needed: that takes a tenth of a command's time, and most commands send nothing. A daemon loads it at its start,
 * since the first request's deadline would include that.
 */
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
  return new EnvHttpProxyAgent({
    ...{ ...limits, requestTls: TLS },
    ...{ httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except },
  });
}
