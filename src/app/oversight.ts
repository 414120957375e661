import { concludeSilently } from './conclude.ts';
import type { DaemonContext } from './context.ts';
import type { Picture } from './fleet.ts';
import type { Running } from './keeper.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { untilItWorks } from './until-it-works.ts';

/** How often it is looked for what is behind, in real milliseconds. */
const LOOK_MS = 2_000;
const CONCURRENT_READS = 8;

/** A daemon that has crossed a boundary has concluded by then, in milliseconds. */
const PAST_BOUNDARY_MS = 10_000;

/** By what the conclusions were last drawn anew. */
interface Grounds {
  policies: DaemonContext['policies'];
  overrides: string;
  atMonotonicMs: number;
}

/**
 * Whichever daemon of a group reconciles a project, the one that holds the fleet's lease knows it: it concludes from its own picture
 * and from the records that the store has, and tells nobody. Elsewhere only what is deleted is forgotten. A daemon on a store of its
 * own has concluded everything itself.
 */
export function startOversight(context: DaemonContext): Running {
  const { clock, rhythm, fleetLease } = context;
  let grounds: Grounds | undefined;
  let storeId: string | undefined;
  if (fleetLease.isAlone) return { close: async () => {} };

  async function overlook(): Promise<void> {
    if (!fleetLease.isHeld()) {
      grounds = undefined;
      return;
    }
    const current = await groundsNow(context);
    const isAnew = isOther(grounds, current);
    const lastMs = (isAnew ? undefined : grounds?.atMonotonicMs) ?? Number.NEGATIVE_INFINITY;
    const isRound = current.atMonotonicMs - lastMs >= rhythm.keeperMs;
    const pictures = [...context.fleet.pictures()].filter((picture) => {
      return isAnew || (isRound && isOfOthers(context, picture)) || isBehind(context, picture);
    });
    await mapConcurrently(pictures, CONCURRENT_READS, ({ project }) => adoptProject(context, project.projectId));
    if (isRound) grounds = current;
  }

  async function forgetDeleted(): Promise<void> {
    if (fleetLease.isHeld()) return;
    const before = storeId;
    storeId = await context.store.storeId();
    const stored = new Set(await context.store.projectIds());
    // A store that came back empty does not mean that anything was deleted.
    if (storeId !== before || storeId !== (await context.store.storeId())) return;
    const { fleet } = context;
    const gone = fleet.projectIds().filter((id) => !stored.has(id) && fleet.conclusionsOf(id).length > 0);
    for (const projectId of gone) fleet.forget(projectId);
  }

  const rounds = [
    clock.every(LOOK_MS, () => untilItWorks(context, overlook)),
    clock.every(rhythm.keeperMs, () => untilItWorks(context, forgetDeleted)),
  ];
  return { close: async () => void (await Promise.all(rounds.map((round) => round.close()))) };
}

async function groundsNow({ overrides, store, clock, policies }: DaemonContext): Promise<Grounds> {
  await overrides.refresh(store, clock.now());
  const { holds, freezes } = overrides;
  return { policies, overrides: JSON.stringify([holds, freezes]), atMonotonicMs: clock.monotonicMs() };
}

function isOther(before: Grounds | undefined, now: Grounds): boolean {
  return before?.policies !== now.policies || before?.overrides !== now.overrides;
}

/** Another daemon looked at it last: what that one has stored since can't be seen in the picture. */
function isOfOthers({ fleet }: DaemonContext, { computes }: Picture): boolean {
  return computes.some(({ computeId }) => fleet.known(computeId)?.conclusion !== fleet.conclusion(computeId));
}

/** Read since it was concluded about, never concluded about, or long past a boundary: at it there is better to do. */
function isBehind({ fleet, clock }: DaemonContext, { computes, readAtMonotonicMs }: Picture): boolean {
  const nowMs = clock.now() - PAST_BOUNDARY_MS;
  return computes.some(({ computeId }) => {
    const known = fleet.known(computeId);
    if (!known || known.atMonotonicMs < readAtMonotonicMs) return true;
    const { nextBoundaryMs } = known.conclusion;
    return nextBoundaryMs !== undefined && nextBoundaryMs <= nowMs;
  });
}

/** What was seen last of each compute counts: in the picture, or when this daemon changed it since. */
async function adoptProject(context: DaemonContext, projectId: string): Promise<void> {
  const { fleet } = context;
  const askedAtMonotonicMs = context.clock.monotonicMs();
  const records = await context.store.records(projectId);
  const picture = fleet.picture(projectId);
  if (!picture) return;
  const computes = picture.computes.map((compute) => {
    const known = fleet.known(compute.computeId);
    return known && known.atMonotonicMs >= picture.readAtMonotonicMs ? known.conclusion.compute : compute;
  });
  for (const conclusion of concludeSilently(context, computes, records)) {
    // What this daemon has concluded itself meanwhile rests on a newer record.
    const knownAtMs = fleet.known(conclusion.compute.computeId)?.atMonotonicMs ?? Number.NEGATIVE_INFINITY;
    if (knownAtMs < askedAtMonotonicMs) fleet.adopt(conclusion);
  }
}
