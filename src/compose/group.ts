import { randomUUID } from 'node:crypto';
import type { Mode } from '../app/evaluate/evaluate.ts';
import { createStoreClock, type StoreClock } from '../app/group/clock-skew.ts';
import { createLeaderLease, type LeaderLease, type WriteBlock } from '../app/group/leader.ts';
import { createStoreWatch, type StoreWatch, type StoreWatchDeps } from '../app/group/store-loss.ts';
import {
  cannotWrite,
  checkWritePermission,
  type SetsDeps,
  type WritePermission,
} from '../app/rollout/write-permission.ts';
import { type EnsureTriggersDeps, ensureTriggers } from '../app/triggers.ts';

type OpenGroupDeps = Omit<StoreWatchDeps, 'holder' | 'newestGeneration' | 'ensureTriggers'> &
  EnsureTriggersDeps &
  SetsDeps & {
    mode: Mode;
    /** The store serves this daemon only. */
    isAlone: boolean;
  };

/** What makes a daemon one of a group. */
export interface Group {
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
  leaderLease: LeaderLease;
  storeClock: StoreClock;
  storeWatch: StoreWatch;
  /** What was last known to keep this daemon from writing. */
  blocked(): WriteBlock | undefined;
  /** Number of the policy set that is decided by; undefined while nothing may be written by it. */
  generation(): number | undefined;
  /** Asked before each write. Rejects if that can't be told: then nothing may be written either. */
  mayWrite(): Promise<WritePermission>;
}

export function openGroup(deps: OpenGroupDeps): Group {
  const { sets } = deps;
  const holder = randomUUID();
  const storeClock = createStoreClock({ ...deps, machineMs: () => Date.now() });
  const blocked = () => cannotWrite({ sets, storeClock });
  const storeWatch = createStoreWatch({
    ...{ ...deps, holder },
    newestGeneration: () => sets.newest,
    ensureTriggers: () => ensureTriggers(deps),
  });
  return {
    ...{ holder, blocked, storeClock, storeWatch },
    leaderLease: createLeaderLease({ ...deps, holder, blocked }),
    generation: () => sets.generation,
    mayWrite: () => checkWritePermission({ ...deps, storeClock, storeWatch }),
  };
}
