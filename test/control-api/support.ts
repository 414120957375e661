import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import type { ControlApiOptions } from '../../src/adapters/control-api/caller.ts';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { loadHttpClient } from '../../src/adapters/control-api/http-client.ts';
import type { ApiResult, ControlApiError } from '../../src/ports/control-api.ts';
import { listenLocally } from '../support/local-server.ts';
import { clientOptions } from './samples.ts';

// Deadlines of tests are shorter than it takes to load.
await loadHttpClient();

export interface SeenRequest {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as JSON unless it is text already. */
  body?: unknown;
}

export type Handler = (request: SeenRequest, response: ServerResponse) => Answer | undefined;

/** A client of the test's own server, closed with the test. */
export function client(url: string, more: Partial<ControlApiOptions> = {}) {
  const api = createControlApi(clientOptions(url, more));
  onTestFinished(() => api.close());
  return api;
}

/** A real HTTP server for one test. The handler answers, or takes the response into its own hands by returning undefined. */
export async function serve(handler: Handler): Promise<{ url: string; port: number; requests: SeenRequest[] }> {
  const requests: SeenRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = '', url = '', headers } = incoming;
    const seen = { method, url, headers, body: Buffer.concat(chunks).toString() };
    requests.push(seen);
    const answer = handler(seen, response);
    if (answer === undefined) return;
    const { status = 200, headers: answerHeaders = {}, body = {} } = answer;
    response.writeHead(status, answerHeaders);
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const { origin, port, close } = await listenLocally(server);
  onTestFinished(close);
  return { url: `${origin}/api/v2`, port, requests };
}

export function errorOf(result: ApiResult<unknown>): ControlApiError {
  if (result.ok) throw new Error(`expected an error, got ${JSON.stringify(result.value)}`);
  return result.error;
}

export function unwrap<T>(result: ApiResult<T>): T {
  if (!result.ok) throw new Error(`expected a value, got ${JSON.stringify(result.error)}`);
  return result.value;
}

export async function all<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const page of pages) items.push(page);
  return items;
}
