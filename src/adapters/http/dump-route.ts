import { Hono } from 'hono';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Log } from '../../ports/telemetry.ts';
import { callerGuard, type Guarded, roleGuard } from './guards.ts';
import type { Targets, Tokens } from './tokens.ts';

export const DUMP_PATH = '/dump';

/** Gives `ebb store dump` what an embedded store has, which only its daemon can read. Always needs a token that may operate everything. */
export function dumpRoute(options: {
  /** Lines of JSON, each with its end. */
  dump(): AsyncIterable<string>;
  operator: DaemonOperator;
  tokens: Tokens;
  log: Log;
}): Hono<Guarded> {
  const { dump, operator, tokens, log } = options;
  const needs = { role: 'operate', targets: (): Targets => 'all', operator, log } as const;
  return new Hono<Guarded>().get(DUMP_PATH, callerGuard(tokens), roleGuard(needs), (context) => {
    const lines = ReadableStream.from(dump()).pipeThrough(new TextEncoderStream());
    return context.body(lines, 200, { 'content-type': 'application/jsonl' });
  });
}
