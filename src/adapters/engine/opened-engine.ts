import { type Engine, type EngineState, EngineUnavailableError } from '../../ports/engine.ts';

/** `in_use`: another process uses the embedded engine. The message is one line that says what to do, without a password. */
export type OpenedEngine = { ok: true; engine: Engine } | { ok: false; error: { code?: 'in_use'; message: string } };

export function refused(message: string, code?: 'in_use'): OpenedEngine {
  return { ok: false, error: { message, ...(code && { code }) } };
}

/** The end of every message about an unreachable server. It does not propose another store, since a group may use this one. */
export const REMEDY = 'see that it runs, and that EBB_QUEUE_URL is right';

const EXPLANATIONS: readonly [pattern: RegExp, text: string][] = [
  [/53100|No space left/, 'its disk is full'],
  [/25006|read-only transaction/, 'it can only be read'],
  [/No such master|invalid reply: null/, 'the Sentinels know no primary of this name'],
  [/cluster support disabled/, 'it is not a Cluster; write redis://HOST:PORT'],
  [/sentinels are unreachable.*Connection is closed/, 'no Sentinel answers'],
  [/ECONNREFUSED/, 'connection refused'],
  [/ENOTFOUND|EAI_AGAIN/, 'host not found'],
  [/ETIMEDOUT|timed? ?out|timeout/i, 'no answer in time'],
  [/EHOSTUNREACH|ENETUNREACH/, 'host unreachable'],
  [/ECONNRESET|EPIPE|socket hang up|Connection terminated|Connection is closed/i, 'the connection was closed'],
  [/WRONGPASS|invalid password|password authentication failed|28P01/i, 'user or password is wrong'],
  [/NOAUTH/i, 'it asks for a password'],
  [/CERT|self.signed|TLS|SSL|wrong version number/i, 'the TLS handshake failed'],
];

/** Explains a failed connection, without passwords or commands. */
export function explainConnectError(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  const text = `${code ?? ''} ${error.message}`;
  const [, explanation] = EXPLANATIONS.find(([pattern]) => pattern.test(text)) ?? [];
  return explanation ?? code ?? error.name;
}

/** Turns the drivers' various errors of an outage into {@link EngineUnavailableError}s with the text of `message`. */
export function createOutageTranslation({
  message,
  isUnavailable,
}: {
  message(error: Error): string;
  isUnavailable(error: Error): boolean;
}): Pick<Engine, 'translateOutages' | 'isUnavailable'> {
  return {
    isUnavailable,
    translateOutages: <Port extends object>(port: Port): Port => {
      const translating = Object.entries(port).map(([name, method]) => [
        name,
        async (...args: unknown[]) => {
          try {
            return await method(...args);
          } catch (error) {
            if (!(error instanceof Error && isUnavailable(error))) throw error;
            throw new EngineUnavailableError(message(error), { cause: error });
          }
        },
      ]);
      return Object.fromEntries(translating) as Port;
    },
  };
}

/** Notifies listeners of changes of state. The first state is up. */
export function createStateChanges() {
  const listeners: ((state: EngineState) => void)[] = [];
  let isUp = true;
  let isEnded = false;
  return {
    /** Stops notifications: failures after the engine was closed are expected. */
    end(): void {
      isEnded = true;
    },
    report(state: EngineState): void {
      if (isEnded || state.up === isUp) return;
      isUp = state.up;
      for (const listener of listeners) listener(state);
    },
    onStateChange(listener: (state: EngineState) => void): void {
      listeners.push(listener);
    },
  };
}
