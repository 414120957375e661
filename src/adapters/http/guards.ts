import type { MiddlewareHandler } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { isLoopbackHost } from '../../domain/loopback.ts';

/** Asks for the bearer token, compared in constant time. */
export function bearerGuard(token: string): MiddlewareHandler {
  const refused = (message: string) => ({ message: { code: 'unauthorised', message } });
  return bearerAuth({
    token,
    realm: 'ebb',
    noAuthenticationHeader: refused('send the header "Authorization: Bearer TOKEN" with the daemon\'s EBB_TOKEN'),
    invalidAuthenticationHeader: refused('send the header "Authorization: Bearer TOKEN"'),
    invalidToken: refused("this is not the daemon's token: check EBB_TOKEN"),
  });
}

/**
 * What is open to this machine alone must not be had by a web page whose name was made to point here (DNS rebinding): its
 * requests carry that name.
 */
export function loopbackHostGuard(): MiddlewareHandler {
  return async (context, next) => {
    if (!isLoopbackHost(hostNameOf(context.req.header('host')))) {
      const message = 'ask for 127.0.0.1 or localhost; under other names ebb answers only with EBB_TOKEN set';
      return context.json({ code: 'forbidden_host', message }, 403);
    }
    return next();
  };
}

/** A browser says where a request comes from: none of another origin may tell ebb anything, and no plain form either. */
export function sameOriginGuard(): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context;
    const origin = req.header('origin');
    const isForeign = origin !== undefined && originHost(origin) !== req.header('host');
    if (isForeign || req.header('sec-fetch-site') === 'cross-site') {
      return context.json({ code: 'forbidden_origin', message: 'requests of other web pages are refused' }, 403);
    }
    return next();
  };
}

/** Only JSON is read: a browser asks before it sends that to another origin. */
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

function hostNameOf(host: string | undefined): string {
  return host === undefined || !URL.canParse(`http://${host}`) ? '' : new URL(`http://${host}`).hostname;
}

function originHost(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : '';
}
