import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { isLoopbackHost } from '../../common/loopback.ts';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Log } from '../../ports/telemetry.ts';
import { routes } from './routes.ts';
import type { Tokens } from './tokens.ts';

/** How long requests may go on after `close`, in milliseconds. */
const CLOSE_GRACE_MS = 1_000;

/** A connection is idle only once its request has ended, so those that are kept alive are looked for again and again. */
const IDLE_SWEEP_MS = 20;

export interface HttpServer {
  ok: true;
  /** `http://HOST:PORT`, with the port that the system chose if 0 was asked for. */
  url: string;
  /** Takes no more requests, lets running ones end for at most a second, then cuts them. */
  close(): Promise<void>;
}

export interface HttpServerOptions {
  /** `host` without brackets; port 0 lets the system choose. */
  listen: { host: string; port: number };
  operator: DaemonOperator;
  log: Log;
  /** Who may tell something, and, where it guards reading, who may see more than /healthz. */
  tokens: Tokens;
  /** Allows an address beyond this machine without a token. */
  insecure?: boolean;
  /** Names, besides those of this machine and the host of `listen`, under which the pages answer without a token. */
  hosts?: readonly string[];
}

/** Serves the daemon's pages. An error is one line that says what to do. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer | { ok: false; error: string }> {
  const { listen, operator, log, tokens, insecure = false, hosts = [] } = options;
  const isLocal = isLoopbackHost(listen.host);
  if (!isLocal && !tokens.guardReading && !insecure) {
    return {
      ok: false,
      error: `${listen.host} can be reached from other machines: set EBB_TOKEN or EBB_TOKEN_FILE, listen on 127.0.0.1, or give --insecure`,
    };
  }
  const known = [listen.host.toLowerCase(), ...hosts];
  const { fetch } = routes({ operator, log, tokens, isLocal, hosts: known });
  const server = createServer(getRequestListener(fetch, { overrideGlobalObjects: false }));
  const error = await listening(server, listen);
  if (error !== undefined) return { ok: false, error };
  const { port } = server.address() as AddressInfo;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return { ok: true, url: `http://${host}:${port}`, close: () => closed(server) };
}

function listening(server: Server, { host, port }: HttpServerOptions['listen']): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(listenError(error, host, port)));
    server.listen({ host, port, exclusive: true }, () => resolve(undefined));
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use; stop what listens there or set EBB_LISTEN`;
    case 'EACCES':
      return `port ${port} on ${host} needs more rights than this process has; set EBB_LISTEN to a port from 1024 on`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is no address of this machine; set EBB_LISTEN to one that is`;
    default:
      return `cannot listen on port ${port} of ${host} (${error.code ?? error.message}); set EBB_LISTEN`;
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
    const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(cut);
      resolve();
    });
  });
}
