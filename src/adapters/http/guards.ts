import { isIP } from 'node:net';
import type { Context, MiddlewareHandler } from 'hono';
import { basicAuth } from 'hono/basic-auth';
import { bearerAuth } from 'hono/bearer-auth';
import { isLoopbackHost } from '../../common/loopback.ts';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Role, TokenHolder } from '../../ports/roles.ts';
import type { Log } from '../../ports/telemetry.ts';
import { callerOf, noteForbidden, type TargetsOf, type Tokens, whyForbidden } from './tokens.ts';

/** Variables that guards set for handlers. */
export interface Guarded {
  Variables: { caller: TokenHolder; requestId: string; staleness: DaemonOperator['staleness'] };
}

const UNKNOWN_TOKEN = 'no token of this daemon: check EBB_TOKEN, or your line in its file of tokens';

/**
 * A request that changes something needs a bearer token, compared in constant time. The password of a browser is not accepted: browsers also
 * send it with requests that another web page makes.
 */
export function callerGuard(tokens: Tokens): MiddlewareHandler<Guarded> {
  const refused = (message: string) => ({ message: { code: 'unauthorised', message } });
  return bearerAuth({
    verifyToken: async (token, context: Context<Guarded>) => {
      // If reading needs a token, too, `readerGuard` has already checked it.
      const holder = (context.get('caller') as TokenHolder | undefined) ?? (await tokens.holderOf(token));
      if (holder) context.set('caller', holder);
      return holder !== undefined;
    },
    realm: 'ebb',
    noAuthenticationHeader: refused('send the header "Authorization: Bearer TOKEN" with a token of the daemon'),
    invalidAuthenticationHeader: refused('send the header "Authorization: Bearer TOKEN"'),
    invalidToken: refused(UNKNOWN_TOKEN),
  });
}

/** Refuses requests beyond the caller's roles, and writes them to the log and to the audit. */
export function roleGuard(options: {
  role: Role;
  targets: TargetsOf;
  /** True for a body that changes nothing, which needs no role; not validated yet. */
  isRead?: (body: unknown) => boolean;
  operator: Pick<DaemonOperator, 'teamsOf' | 'refused'>;
  log: Pick<Log, 'warn'>;
}): MiddlewareHandler<Guarded> {
  const { role, targets, isRead, operator, log } = options;
  return async (context, next) => {
    const { req } = context;
    const caller = context.get('caller');
    const needsBody = caller.grants && role !== 'read' && req.method === 'POST';
    const body: unknown = needsBody ? await req.json().catch(() => undefined) : undefined;
    const about = targets({ id: req.param('id'), body });
    const message = await whyForbidden(caller, isRead?.(body) ? 'read' : role, about, (...asked) =>
      operator.teamsOf(...asked),
    );
    if (message === undefined) return next();
    const refusal = { role, what: `${req.method} ${req.path}`, targets: about, message };
    await noteForbidden({ operator, log }, callerOf(caller, context), refusal);
    return context.json({ code: 'forbidden', message }, 403);
  };
}

/** Requires a token for reading, too: as a bearer token, or as the password that a browser asks for, with any name. */
export function readerGuard(tokens: Tokens): MiddlewareHandler<Guarded> {
  const bearer = callerGuard(tokens);
  const password = basicAuth({
    verifyUser: async (_name, token, context: Context<Guarded>) => {
      const holder = await tokens.holderOf(token);
      if (holder) context.set('caller', holder);
      return holder !== undefined;
    },
    realm: 'ebb: any name, and a token as the password',
    invalidUserMessage: { code: 'unauthorised', message: UNKNOWN_TOKEN },
  });
  return (context, next) => {
    const authorization = context.req.header('authorization') ?? '';
    const isBrowser = authorization === '' && context.req.header('accept')?.includes('text/html') === true;
    return isBrowser || /^basic /i.test(authorization) ? password(context, next) : bearer(context, next);
  };
}

/**
 * Guards routes that need no token against DNS rebinding. There the name of a web page is made to resolve to this machine, so that the page's
 * requests come here, with that name as host. An address as host is harmless, so it is accepted where other machines can reach ebb.
 */
export function knownHostGuard({ isLocal, hosts }: { isLocal: boolean; hosts: readonly string[] }): MiddlewareHandler {
  return async (context, next) => {
    const host = hostNameOf(context.req.header('host'));
    const isAddress = isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0;
    if (isLoopbackHost(host) || (isAddress && !isLocal) || hosts.includes(host)) return next();
    const message = `without a token ebb answers to names that it knows, and ${JSON.stringify(host)} is none of them: ask for 127.0.0.1 or localhost, add the name to http_hosts (EBB_HTTP_HOSTS), or set EBB_TOKEN`;
    return context.json({ code: 'forbidden_host', message }, 403);
  };
}

/** Refuses requests that a browser sends from a page of another origin. */
export function sameOriginGuard(): MiddlewareHandler {
  return async (context, next) => (isForeign(context) ? refuseForeign(context) : next());
}

/** Accepts a form only if the browser confirms, by one of two headers, that it is on a page of this daemon. */
export function ownFormGuard(): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context;
    const isOwn = req.header('origin') !== undefined || req.header('sec-fetch-site') === 'same-origin';
    return !isOwn || isForeign(context) ? refuseForeign(context) : next();
  };
}

/** Accepts only JSON, which a browser doesn't send to another origin without a preflight request. */
export function jsonGuard(): MiddlewareHandler {
  return async (context, next) => {
    const type = context.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
    if (type !== 'application/json') {
      const message = 'send JSON, with "Content-Type: application/json"';
      return context.json({ code: 'unsupported_media_type', message }, 415);
    }
    return next();
  };
}

function isForeign({ req }: Context): boolean {
  const origin = req.header('origin');
  const isOther = origin !== undefined && originHost(origin) !== req.header('host');
  const site = req.header('sec-fetch-site');
  return isOther || site === 'cross-site' || site === 'same-site';
}

function refuseForeign(context: Context): Response {
  return context.json({ code: 'forbidden_origin', message: 'requests of other web pages are refused' }, 403);
}

function hostNameOf(host: string | undefined): string {
  return host === undefined || !URL.canParse(`http://${host}`) ? '' : new URL(`http://${host}`).hostname;
}

function originHost(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : '';
}

/** The message for requests that need the store while it is unavailable. */
export function unavailable({ message }: Error): string {
  return `${message}: nothing was changed, try again when /readyz says that the store answers`;
}
