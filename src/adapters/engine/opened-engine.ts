import type { Engine } from '../../ports/engine.ts';

/** The error's message is one line that says what to do and holds no password. */
export type OpenedEngine = { ok: true; engine: Engine } | { ok: false; error: { message: string } };

export function refused(message: string): OpenedEngine {
  return { ok: false, error: { message } };
}

/** How every message ends that says that a server is away. */
export const START_IT = 'start it, or leave EBB_QUEUE_URL unset to use the embedded queue';
