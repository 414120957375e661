import type { PgPool } from 'bullmq';

export interface WatchedPoolOptions {
  pool: PgPool;
  /** Hears of every answer: no error for one of the server's own, also if it refuses the statement. */
  onAnswer(error: Error | undefined): void;
}

/** The same pool, whose `query` tells whether the server is there. */
export function watchPool({ pool, onAnswer }: WatchedPoolOptions): PgPool {
  const query = pool.query.bind(pool);
  pool.query = async <Row>(text: string, params?: readonly unknown[]) => {
    try {
      const result = await query<Row>(text, params);
      onAnswer(undefined);
      return result;
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      onAnswer(isServerAway(problem) ? problem : undefined);
      throw error;
    }
  };
  return pool;
}

/** False for the errors that a working server gives: those with an SQLSTATE, but for broken or ending connections. */
export function isServerAway(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || !/^[0-9A-Z]{5}$/.test(code) || /^(08|57P|58|53|XX)/.test(code);
}
