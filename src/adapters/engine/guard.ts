import { type Engine, EngineAwayError } from '../../ports/engine.ts';

export interface GuardOptions {
  /** What to say while the engine is away. */
  message(error: Error): string;
  isAway(error: Error): boolean;
}

/** The parts of an engine that keep its drivers' many ways of saying "not now" from whoever uses it. */
export function createGuard({ message, isAway }: GuardOptions): Pick<Engine, 'guard' | 'isAway'> {
  function clear(error: unknown): unknown {
    return error instanceof Error && isAway(error) ? new EngineAwayError(message(error), { cause: error }) : error;
  }

  return {
    isAway,
    guard: <Port extends object>(port: Port): Port => {
      const guarded = Object.entries(port).map(([name, method]) => [
        name,
        async (...args: unknown[]) => {
          try {
            return await method(...args);
          } catch (error) {
            throw clear(error);
          }
        },
      ]);
      return Object.fromEntries(guarded) as Port;
    },
  };
}
