import type { ControlApi } from '../../ports/control-api.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import { controlApiOver } from './control-api.ts';
import { withDaemonGuard } from './daemon-guard.ts';
import { createUsageReader } from './usage.ts';

/**
 * The control API for the daemon: it reads, changes size and timeout, and restarts; nothing else passes its transport. Nothing is
 * sent before the first call. Throws if the base URL can't be used.
 */
export function createControlApi(options: ControlApiOptions): ControlApi {
  const { call, accounts, permit, accountStatus, close } = createCaller(options, withDaemonGuard);
  return { ...controlApiOver({ call, accounts }), usage: createUsageReader(call), permit, accountStatus, close };
}
