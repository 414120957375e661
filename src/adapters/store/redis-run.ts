import { createHash } from 'node:crypto';
import type { RedisEngine } from '../../ports/engine.ts';

/** Runs a script, one atomic step, by its hash; sends its text only when Redis doesn't know it (yet, or any more). */
export type RunScript = (text: string, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

export function createRunScript({ commands: redis }: RedisEngine): RunScript {
  const hashes = new Map<string, string>();

  function hashOf(text: string): string {
    const hash = hashes.get(text) ?? createHash('sha1').update(text).digest('hex');
    hashes.set(text, hash);
    return hash;
  }

  return async (text, keys, args) => {
    try {
      return await redis.evalsha(hashOf(text), keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return redis.eval(text, keys.length, ...keys, ...args);
    }
  };
}
