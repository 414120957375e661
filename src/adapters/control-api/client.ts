import type { ControlApi } from '../../ports/control-api.ts';
import type { AccountStatus } from './accounts.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import { controlApiOver } from './control-api.ts';
import { withDaemonGuard } from './daemon-guard.ts';

/** The port, and what readiness asks of its client. */
export interface ControlApiClient extends ControlApi {
  /** Whether each account's key is accepted, as far as it was tried. */
  accountStatus(): AccountStatus[];
}

/**
 * The control API for the daemon: it reads, changes size and timeout, and restarts; nothing else passes its transport. Nothing is
 * sent before the first call. Throws if the base URL can't be used.
 */
export function createControlApi(options: ControlApiOptions): ControlApiClient {
  const { call, accountStatus, close } = createCaller(options, withDaemonGuard);
  return { ...controlApiOver({ call, accounts: options.accounts }), accountStatus, close };
}
