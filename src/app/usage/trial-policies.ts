/** Notes which policies were current during a trial: readers of its result must know of changes meanwhile. */
import { trialSpan } from '../../domain/trial/assignment.ts';
import type { UsageStore } from '../../ports/store.ts';
import { type KeptTrial, trialKey } from './trial-days.ts';
import type { Place, StoredUsage } from './usage-account.ts';

/** No unit has this name. */
const POLICIES = ' ';

/** More changes of one trial are not kept. */
const MOST_CHANGES = 1_000;

/** From this instant on a policy set was current; milliseconds since the epoch. */
export interface PoliciesSince {
  atMs: number;
  setHash: string;
  /** The source of the rules, such as a commit. */
  revision: string | null;
}

/** Notes which policies count if these are others than were noted last, while the trial runs. */
export async function keepTrialPolicies(
  store: UsageStore,
  place: Place,
  { name, design }: Pick<KeptTrial, 'name' | 'design'>,
  now: PoliciesSince,
): Promise<void> {
  const { fromMs, untilMs } = trialSpan(design);
  if (now.atMs < fromMs || now.atMs >= untilMs) return;
  const known = (await readNoted(store, place, name)) ?? [];
  const last = known.at(-1);
  if (known.length > MOST_CHANGES || (last?.setHash === now.setHash && last.revision === now.revision)) return;
  const bytes = new TextEncoder().encode(JSON.stringify([...known, now]));
  await store.putUsage(trialKey(place, name), new Map([[POLICIES, bytes]]));
}

/** Changes of policies during a trial, oldest first; undefined if no daemon has noted any. */
export async function readPolicyChanges(
  store: StoredUsage,
  place: Place,
  name: string,
): Promise<PoliciesSince[] | undefined> {
  return (await readNoted(store, place, name))?.slice(1);
}

async function readNoted(store: StoredUsage, place: Place, name: string): Promise<PoliciesSince[] | undefined> {
  const bytes = (await store.usage(trialKey(place, name), [POLICIES])).get(POLICIES);
  if (bytes === undefined) return undefined;
  const noted: unknown = JSON.parse(new TextDecoder().decode(bytes));
  return Array.isArray(noted) ? noted : undefined;
}
