/** A receiver of webhooks that keeps what it gets and answers as it is told. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { TestContext } from 'vitest';
import { listenLocally } from './local-server.ts';

/** What it does with its `count`th request, from 1 on. */
export type Answer = (response: ServerResponse, count: number) => void;

export interface Got {
  /** As the header says. */
  id: string;
  body: string;
  headers: IncomingHttpHeaders;
}

export async function receiving(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  answer: Answer,
): Promise<{ got: Got[]; url: string }> {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    got.push({ id: String(request.headers['webhook-id']), body, headers: request.headers });
    answer(response, got.length);
  });
  const { origin, close } = await listenLocally(server);
  onTestFinished(close);
  return { got, url: `${origin}/hook` };
}

export const takes = (response: ServerResponse) => void response.writeHead(204).end();

/** What came for the first time. */
export const isFirst = ({ id }: Pick<Got, 'id'>, at: number, all: readonly Pick<Got, 'id'>[]): boolean =>
  all.findIndex((one) => one.id === id) === at;
