import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';

/** Sends the head and half of the body, then cuts the connection. */
export function hangUp(bindings: HttpBindings, status: number, body: string): Response {
  const { outgoing } = bindings;
  outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) });
  outgoing.write(body.slice(0, Math.floor(body.length / 2)), () => outgoing.socket?.destroy());
  return RESPONSE_ALREADY_SENT;
}

/** A whole answer that says it is JSON and isn't. */
export function wrongJson(status: number, body: string): Response {
  return new Response(body.slice(0, Math.floor(body.length / 2)), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}
