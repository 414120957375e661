import type { TimeSpec } from '../../time/time-spec.ts';
import { openSince } from '../../time/windows.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, supporting, timed } from './kind.ts';

/** Restarts computes, for the platform's updates. */
export interface RestartPolicy extends PolicyBase {
  kind: 'restart';
  at: readonly TimeSpec[];
  /** The minimum time since the last start, in milliseconds. */
  everyMs?: number;
  /** Restarts only while fewer connections than this are open. */
  connectionsBelow?: number;
}

/** `kind: restart`: while a window is open, computes may be restarted. */
export const restartRule: Rule<RestartPolicy> = {
  ...timed,
  stopsWrites: false,
  directivesAt(policy, policyIndex, instantMs) {
    const openSinceMs = openSince(policy.at, instantMs);
    if (openSinceMs === undefined) return [];
    const { everyMs, connectionsBelow } = policy;
    return [
      {
        type: 'restart',
        policy,
        policyIndex,
        openSinceMs,
        ...(everyMs !== undefined && { everyMs }),
        ...(connectionsBelow !== undefined && { connectionsBelow }),
      },
    ];
  },
  ...supporting,
  decides: 'restarts',
  restartsAt: ({ at }) => at,
  asksForConnections: ({ connectionsBelow }) => connectionsBelow !== undefined,
  protectionNoun: () => undefined,
  mayChange: () => [],
};
