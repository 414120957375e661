import { randomUUID } from 'node:crypto';
import type { DaemonContext } from '../app/context.ts';
import { createLeaderLease, type LeaderLeaseDeps } from '../app/group/leader.ts';
import { createStoreWatch, type StoreWatchDeps } from '../app/group/store-loss.ts';
import { cannotWrite, generationOf } from '../app/rollout/write-permission.ts';
import { ensureTriggers } from '../app/triggers.ts';

type GroupDeps = Omit<LeaderLeaseDeps & StoreWatchDeps, 'holder' | 'blocked' | 'generation' | 'ensureTriggers'>;

/** What makes a daemon one of a group; `context`: what it becomes a part of. */
export function openGroup(
  deps: GroupDeps,
  context: () => DaemonContext,
): Pick<DaemonContext, 'holder' | 'blocked' | 'leaderLease' | 'storeWatch'> {
  const holder = randomUUID();
  const blocked = () => cannotWrite(context());
  return {
    ...{ holder, blocked },
    leaderLease: createLeaderLease({ ...deps, holder, blocked }),
    storeWatch: createStoreWatch({
      ...{ ...deps, holder },
      generation: () => generationOf(context()),
      ensureTriggers: () => ensureTriggers(context()),
    }),
  };
}
