import type { FactName } from '../../domain/compute/account-facts.ts';
import {
  type Compute,
  type ComputeSettings,
  NEVER_SUSPENDS,
  sameSize,
  timeoutLength,
} from '../../domain/compute/compute.ts';
import { COMPUTE_SIZES_CU } from '../../domain/compute/compute-units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApiError } from '../../ports/control-api.ts';
import type { Database, DatabaseSession } from '../../ports/verify.ts';
import {
  agreed,
  judgeComputeUpdatedAt,
  judgeIdleResize,
  judgeLastActive,
  judgeListUpdatedAt,
  judgeRestartDrops,
  judgeTimeoutChange,
  type Outcome,
  type Settled,
  type WatchedChange,
} from './judge.ts';
import type { Observer } from './observer.ts';

export interface Experiments {
  observer: Observer;
  clock: Clock;
  signal: AbortSignal;
  database?: Database | undefined;
  original: ComputeSettings;
  note(fact: FactName, outcome: Outcome): void;
}

const MAX_TRIES = 4;
const SHORT_TIMEOUT_SECONDS = 60;
/** A compute may take this much longer than its timeout to fall asleep. */
const SUSPEND_GRACE_MS = 120_000;
const SLEEP_POLL_MS = 15_000;
/** Longer than the tolerance of instants, so that new activity differs from earlier activity. */
const QUIET_MS = 8_000;
/** Gives the database time to see a statement. */
const SESSION_MS = 3_000;
const NO_REST = 'the project did not come to rest';

/** Repeats an experiment until two runs agree or disagree about each fact. A run has one outcome for each fact. */
async function repeat(run: () => Promise<Outcome[]>): Promise<void> {
  const runs: Outcome[][] = [];
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    runs.push(await run());
    const byFact = (runs[0] ?? []).map((_, fact) => runs.flatMap((outcomes) => outcomes[fact] ?? []));
    if (byFact.every((outcomes) => isDecided(outcomes))) return;
  }
}

function isDecided(outcomes: readonly Outcome[]): boolean {
  return (
    'value' in agreed(outcomes) || new Set(outcomes.flatMap((one) => ('value' in one ? [one.value] : []))).size > 1
  );
}

function refusal({ status, message, outcomeUnknown }: ControlApiError): string {
  if (outcomeUnknown) return 'the change got no clear answer';
  return `the change was refused (${status ?? 'no answer'}: ${message})`;
}

/** Changes a compute at rest and watches it. */
async function change(
  { observer, clock }: Experiments,
  before: Settled,
  patch: Partial<ComputeSettings>,
  watchesList: boolean,
): Promise<WatchedChange | { why: string; status?: number | undefined }> {
  const sentAtMs = clock.now();
  const sent = await observer.update(patch);
  const [answeredMs, answeredAtMs] = [clock.monotonicMs(), clock.now()];
  if (!sent.ok) return { why: refusal(sent.error), status: sent.error.status };
  const oldMs = before.listed?.updatedAtMs;
  const seen = await observer.follow(answeredMs, watchesList ? ({ updatedAtMs }) => updatedAtMs !== oldMs : undefined);
  const { operations } = sent.value;
  return { before, patch, sentAtMs, answeredMs, answeredAtMs, operations, answer: sent.value, seen };
}

/** A size near the original one, larger or smaller, of at most 2 CU. */
export function otherSize({ minCu, maxCu }: ComputeSettings): { minCu: number; maxCu: number } {
  if (minCu < maxCu) return { minCu, maxCu: minCu };
  const next = COMPUTE_SIZES_CU.find((cu) => cu > maxCu) ?? maxCu;
  return next <= 2 ? { minCu, maxCu: next } : { minCu: 1, maxCu };
}

/** The facts that a change of the sleeping compute shows, and the function that judges each. */
const ASLEEP_JUDGES = [
  ['idle_resize', judgeIdleResize],
  ['list_updated_at', judgeListUpdatedAt],
  ['compute_updated_at', judgeComputeUpdatedAt],
] as const;

/** Changes the size of the sleeping compute, there and back. */
export async function whileAsleep(experiments: Experiments): Promise<void> {
  const { observer, original, note } = experiments;
  await repeat(async () => {
    const outcomes = await once();
    for (const [at, [fact]] of ASLEEP_JUDGES.entries()) note(fact, outcomes[at] ?? { why: NO_REST });
    return outcomes;
  });

  async function once(): Promise<Outcome[]> {
    const all = (why: string) => ASLEEP_JUDGES.map(() => ({ why }));
    let before = await observer.settle(true);
    if (before?.compute.state === 'active') {
      if (!(await fallAsleep(experiments))) return all('the compute did not fall asleep');
      before = await observer.settle(true);
    }
    if (before?.compute.state !== 'idle') return all(NO_REST);
    const { minCu, maxCu } = sameSize(before.compute, original) ? otherSize(original) : original;
    const watched = await change(experiments, before, { minCu, maxCu }, true);
    return ASLEEP_JUDGES.map(([, judge]) => ('why' in watched ? watched : judge(watched)));
  }
}

/** Sets the shortest timeout that the plan allows, and waits until the compute sleeps. Returns false if it does not. */
export async function fallAsleep({ observer, clock }: Experiments): Promise<boolean> {
  let compute = await observer.compute();
  for (const suspendTimeoutSeconds of [SHORT_TIMEOUT_SECONDS, 300]) {
    if (!compute || compute.state === 'idle' || timeoutLength(compute.suspendTimeoutSeconds) <= suspendTimeoutSeconds)
      break;
    if ((await observer.update({ suspendTimeoutSeconds })).ok) break;
  }
  const startedMs = clock.monotonicMs();
  for (;;) {
    compute = (await observer.compute()) ?? compute;
    if (compute?.state === 'idle') return true;
    const maxWaitMs = timeoutLength(compute?.suspendTimeoutSeconds ?? 300) * 1000 + SUSPEND_GRACE_MS;
    if (maxWaitMs === Number.POSITIVE_INFINITY || clock.monotonicMs() - startedMs > maxWaitMs) return false;
    await observer.wait(SLEEP_POLL_MS);
  }
}

/** Other timeouts to try, in order, since a plan may allow only five minutes or never. */
function otherTimeouts({ suspendTimeoutSeconds: original }: ComputeSettings): number[] {
  return [600, 900, original === NEVER_SUSPENDS ? 300 : NEVER_SUSPENDS].filter((one) => one !== original);
}

/** Changes the timeout of the awake compute, there and back. With a database, a session keeps it awake. */
export async function timeoutWhileAwake(experiments: Experiments): Promise<void> {
  const { observer, original, note } = experiments;
  let candidates = otherTimeouts(original);
  let session: DatabaseSession | undefined;
  await repeat(async () => {
    const outcome = await once();
    note('timeout_change', outcome);
    return [outcome];
  }).finally(() => session?.close());

  async function once(): Promise<Outcome> {
    if (session?.isOpen() !== true) session = await openSession(experiments, true);
    const before = await observer.settle(false);
    if (before?.compute.state !== 'active') return { why: before ? 'the compute was not awake' : NO_REST };
    const watched = await changeTimeout(before);
    return 'why' in watched ? { why: watched.why } : judgeTimeoutChange(watched);
  }

  /** Changes the timeout to another one that the plan allows, or back to the original one. */
  async function changeTimeout(before: Settled): ReturnType<typeof change> {
    const isOriginal = before.compute.suspendTimeoutSeconds === original.suspendTimeoutSeconds;
    let watched: Awaited<ReturnType<typeof change>> = { why: 'the plan allows no other timeout' };
    for (const suspendTimeoutSeconds of isOriginal ? candidates : [original.suspendTimeoutSeconds]) {
      watched = await change(experiments, before, { suspendTimeoutSeconds }, false);
      if (!('why' in watched) || !FORBIDDEN.includes(watched.status ?? 0)) break;
      candidates = candidates.filter((one) => one !== suspendTimeoutSeconds);
    }
    return watched;
  }
}

/** The statuses with which the API refuses values that the plan doesn't allow. */
const FORBIDDEN = [400, 402, 403, 412, 422];

/** Opens a session, with a running statement if `isBusy`. Undefined without a database, or if it doesn't answer. */
async function openSession({ database, signal, observer }: Experiments, isBusy: boolean) {
  const session = await database?.connect(signal).catch(() => undefined);
  if (!session) return undefined;
  await session.use().catch(() => {});
  if (isBusy) session.work();
  await observer.wait(SESSION_MS);
  return session;
}

const NO_SESSION = 'the database did not accept a session';

/** Runs one statement, disconnects, and watches when the API shows that activity. */
export async function activity(experiments: Experiments): Promise<void> {
  const { observer, clock, note } = experiments;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const outcome = await once();
    note('last_active', outcome);
    if ('value' in outcome) return;
  }

  async function once(): Promise<Outcome> {
    const session = await openSession(experiments, false);
    if (!session) return { why: NO_SESSION };
    try {
      await observer.wait(QUIET_MS);
      const before = await observer.settle(true);
      if (before?.compute.state !== 'active') return { why: before ? 'the compute was not awake' : NO_REST };
      const usedAtMs = clock.now();
      const isUsed = await session.use().then(
        () => true,
        () => false,
      );
      if (!isUsed) return { why: 'the session has ended' };
      await session.close();
      const [leftMs, leftAtMs] = [clock.monotonicMs(), clock.now()];
      const isListed = ({ computeLastActiveAtMs: listedMs = 0 }, compute: Compute | undefined) =>
        // The API shows whole seconds.
        Math.min(listedMs, compute?.lastActiveAtMs ?? listedMs) >= usedAtMs - 1000;
      return judgeLastActive({
        before,
        usedAtMs,
        leftMs,
        leftAtMs,
        seen: await observer.followActivity(leftMs, isListed),
      });
    } finally {
      await session.close();
    }
  }
}

/** Restarts the compute while two sessions are open, and tells which of them survive. */
export async function restart(experiments: Experiments): Promise<void> {
  const { observer, clock, note } = experiments;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const outcome = await once();
    note('restart_drops', outcome);
    if ('value' in outcome) return;
  }

  async function once(): Promise<Outcome> {
    const [idle, busy] = [await openSession(experiments, false), await openSession(experiments, true)];
    try {
      if (!idle || !busy) return { why: NO_SESSION };
      const before = await observer.settle(false);
      if (before?.compute.state !== 'active') return { why: before ? 'the compute was not awake' : NO_REST };
      if (!idle.isOpen() || !busy.isOpen()) return { why: 'a session ended before the restart' };
      const sentAtMs = clock.now();
      const sent = await observer.restart();
      const [answeredMs, answeredAtMs] = [clock.monotonicMs(), clock.now()];
      if (!sent.ok) return { why: refusal(sent.error) };
      const seen = await observer.follow(answeredMs);
      const open = { idle: await answers(idle), busy: busy.isOpen() };
      const { operations } = sent.value;
      return judgeRestartDrops({ before, sentAtMs, answeredMs, answeredAtMs, operations, seen, open });
    } finally {
      await Promise.all([idle?.close(), busy?.close()]);
    }
  }
}

async function answers(session: DatabaseSession): Promise<boolean> {
  return session.use().then(
    () => session.isOpen(),
    () => false,
  );
}

/** The settings that differ from the original ones. */
export function differing(compute: ComputeSettings, original: ComputeSettings): Partial<ComputeSettings> {
  const { minCu, maxCu, suspendTimeoutSeconds } = original;
  return {
    ...(!sameSize(compute, original) && { minCu, maxCu }),
    ...(compute.suspendTimeoutSeconds !== suspendTimeoutSeconds && { suspendTimeoutSeconds }),
  };
}
