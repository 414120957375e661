import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { isLoopbackHost } from '../../domain/loopback.ts';

/** How long each part of an exchange may take, milliseconds; the call's deadline comes on top. */
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

/** Overrides of HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
export interface Proxies {
  httpProxy?: string;
  httpsProxy?: string;
  noProxy?: string;
}

const MAX_CONNECTIONS = 16;

/** A keep-alive pool. Proxies come from the usual variables; an API on loopback is never reached through one. */
export function createDispatcher(options: {
  baseUrl: URL;
  timeouts: Timeouts;
  maxBodyBytes: number;
  proxies?: Proxies;
}): Dispatcher {
  const { baseUrl, timeouts, maxBodyBytes, proxies } = options;
  const limits = {
    connections: MAX_CONNECTIONS,
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    maxResponseSize: maxBodyBytes,
  };
  return isLoopbackHost(baseUrl.hostname) ? new Agent(limits) : new EnvHttpProxyAgent({ ...limits, ...proxies });
}
