import type { Engine } from '../../ports/engine.ts';

/** The error's message is one line that says what to do and holds no password. */
export type OpenedEngine = { ok: true; engine: Engine } | { ok: false; error: EngineRefusal };

interface EngineRefusal {
  /** Another process has the embedded engine for itself. */
  code?: 'in_use';
  message: string;
}

export function refused(message: string, code?: 'in_use'): OpenedEngine {
  return { ok: false, error: { message, ...(code && { code }) } };
}

/** How every message ends that says that a server is away. */
export const START_IT = 'start it, or leave EBB_QUEUE_URL unset to use the embedded queue';
