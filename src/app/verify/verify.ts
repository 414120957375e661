import type { Result } from '../../common/result.ts';
import { ACCOUNT_FACTS, FACT_NAMES, type FactName, type FactValue } from '../../domain/compute/account-facts.ts';
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Database, KeptSettings, SentRequest, SettingsKeeper, VerifyApi } from '../../ports/verify.ts';
import {
  activity,
  differing,
  type Experiments,
  fallAsleep,
  restart,
  timeoutWhileAwake,
  whileAsleep,
} from './experiments.ts';
import { agreed, judgeLimits, type Outcome } from './judge.ts';
import { BoundsReached, createObserver } from './observer.ts';
import { findTarget } from './target.ts';

/** The bounds of a run of `ebb verify`. The reserve is for restoring the settings. */
export const BOUNDS = { minutes: 15, requests: 150, cuHours: 1, reserveMinutes: 2, reserveRequests: 15 } as const;

export type Verdict = 'as_expected' | 'differs' | 'not_observable';

export interface FoundFact {
  fact: FactName;
  /** The value that ebb assumes without a measurement. */
  expected: string;
  verdict: Verdict;
  observed?: FactValue;
  /** The longest measured time until the API showed a change. */
  seconds?: number;
  why?: string;
  /** Absent if the experiment was not made. */
  experiment?: { atMs: number; tookMs: number; requests: readonly SentRequest[] };
}

export interface VerifyReport {
  atMs: number;
  tookMs: number;
  requests: number;
  facts: readonly FoundFact[];
}

export interface VerifyDeps {
  api: VerifyApi;
  database?: Database | undefined;
  keeper: SettingsKeeper;
  clock: Clock;
  /** When it aborts, the settings are restored, and there is no report. */
  signal: AbortSignal;
  account: string;
  projectId: string;
  onProgress?: (step: string) => void;
}

/** Measures the facts on a project that was made for this purpose, and restores the settings of its compute. */
export async function verifyAccount(deps: VerifyDeps): Promise<Result<VerifyReport>> {
  const { api, keeper, clock, signal, account, projectId } = deps;
  const atMs = clock.now();
  const startedMs = clock.monotonicMs();
  if (await keeper.read())
    return { ok: false, problem: 'an earlier run was killed: first put back what was there, with --restore' };
  const found = await findTarget(api, { account, projectId, nowMs: atMs });
  if (!found.ok) return found;
  const { compute } = found.value;
  const kept = { account, projectId, computeId: compute.computeId, settings: settingsOf(compute) };
  const refusal = deps.database?.refusalFor(compute.host);
  if (refusal !== undefined) return { ok: false, problem: refusal };
  const { minutes, requests, cuHours } = BOUNDS;
  deps.onProgress?.(
    `at most ${minutes} minutes, ${requests} requests and ${cuHours} CU-hour; only this compute is changed`,
  );
  await keeper.keep(kept);
  const notes = createNotes(deps);
  let failure: unknown;
  try {
    await gather(deps, kept, compute, notes);
  } catch (error) {
    if (error instanceof BoundsReached) notes.endAt(error.message);
    else failure = error;
  }
  api.releaseReserve();
  const isBack = await putBack({ api, clock, kept });
  if (!isBack) return { ok: false, problem: 'its settings could not be put back: run it again with --restore' };
  await keeper.remove();
  if (signal.aborted) return { ok: false, problem: 'stopped; the settings of the compute are as they were' };
  if (failure !== undefined) throw failure;
  const facts = FACT_NAMES.map((fact) => notes.found(fact));
  return { ok: true, value: { atMs, tookMs: clock.monotonicMs() - startedMs, requests: api.sent().length, facts } };
}

async function gather(
  { api, database, clock, signal, account, projectId, onProgress = () => {} }: VerifyDeps,
  { computeId, settings: original }: KeptSettings,
  { state }: Compute,
  notes: ReturnType<typeof createNotes>,
): Promise<void> {
  const observer = createObserver({ api, clock, target: { account, projectId, computeId }, signal });
  const base: Experiments = { observer, clock, signal, database, original, note: notes.note };
  const asleep = async () => {
    onProgress('a new size on the sleeping compute');
    await notes.timed(['idle_resize', 'list_updated_at', 'compute_updated_at'], () => whileAsleep(base));
  };
  const isAwake = state !== 'idle';
  if (!isAwake) await asleep();
  if (isAwake || database) {
    onProgress('a new timeout on the awake compute');
    await notes.timed(['timeout_change'], () => timeoutWhileAwake(base));
  }
  if (database) {
    onProgress('when activity shows');
    await notes.timed(['last_active'], () => activity(base));
    onProgress('what a restart drops');
    await notes.timed(['restart_drops'], () => restart(base));
  }
  if (!isAwake) return;
  onProgress('waiting for the compute to sleep');
  await fallAsleep(base);
  await asleep();
}

/** The reasons for experiments that were not made because they need more than the command was given. */
const NEEDS: Partial<Record<FactName, string>> = {
  timeout_change: 'the compute was asleep: give --database-url, or run this within minutes after the project was made',
  last_active: 'it needs a client: give --database-url',
  restart_drops: 'it needs a client: give --database-url',
};

/** Facts for which one run is enough: no activity of others can produce the opposite result. Other experiments need two runs that agree. */
const ONE_RUN: readonly FactName[] = ['last_active', 'restart_drops'];

/** Collects outcomes, and the times and requests of experiments. */
function createNotes({ api, clock }: Pick<VerifyDeps, 'api' | 'clock'>) {
  const outcomes = new Map<FactName, Outcome[]>();
  const experiments = new Map<FactName, NonNullable<FoundFact['experiment']>>();
  let endedBy: string | undefined;

  function outcomeOf(fact: FactName): Outcome {
    if (fact === 'limits') return judgeLimits(api.limits());
    const ofFact = outcomes.get(fact) ?? [];
    const outcome = agreed(ofFact, ONE_RUN.includes(fact) ? 1 : 2);
    if ('value' in outcome) return outcome;
    if (endedBy !== undefined) return { why: endedBy };
    return ofFact.length > 0 ? outcome : { why: NEEDS[fact] ?? 'it was not tried' };
  }

  return {
    note: (fact: FactName, outcome: Outcome) => void outcomes.set(fact, [...(outcomes.get(fact) ?? []), outcome]),
    endAt(bound: string) {
      endedBy = bound;
    },
    async timed(facts: readonly FactName[], work: () => Promise<void>) {
      const atMs = clock.now();
      const startedMs = clock.monotonicMs();
      const before = api.sent().length;
      await work().finally(() => {
        const experiment = { atMs, tookMs: clock.monotonicMs() - startedMs, requests: api.sent().slice(before) };
        for (const fact of facts) experiments.set(fact, experiment);
      });
    },
    found(fact: FactName): FoundFact {
      const [expected] = ACCOUNT_FACTS[fact];
      const experiment = experiments.get(fact);
      const outcome = outcomeOf(fact);
      const made = { fact, expected, ...(experiment && { experiment }) };
      if ('why' in outcome) return { ...made, verdict: 'not_observable', why: outcome.why };
      const observed = ACCOUNT_FACTS[fact].find((value) => value === outcome.value);
      return {
        ...made,
        verdict: observed === expected ? 'as_expected' : 'differs',
        ...(observed && { observed }),
        ...(outcome.seconds !== undefined && { seconds: outcome.seconds }),
      };
    },
  };
}

const PUT_BACK_TRIES = 12;
const PUT_BACK_PAUSE_MS = 5_000;

/** Restores the settings of the compute. Returns true once two readings in a row show them. No signal aborts it. */
export async function putBack({
  api,
  clock,
  kept: { account, projectId, computeId, settings },
}: Pick<VerifyDeps, 'api' | 'clock'> & { kept: KeptSettings }): Promise<boolean> {
  let correctReadings = 0;
  for (let tries = 0; tries < PUT_BACK_TRIES; tries += 1) {
    const read = await api.listComputes({ account, projectId, name: projectId }, { deadlineMs: 8_000 });
    const compute = read.ok ? read.value.computes.find((one) => one.computeId === computeId) : undefined;
    const fields = compute && differing(compute, settings);
    correctReadings = fields && Object.keys(fields).length === 0 ? correctReadings + 1 : 0;
    if (correctReadings === 2) return true;
    if (fields && correctReadings === 0)
      await api.updateCompute(projectId, computeId, fields, { deadlineMs: 15_000, repeatLocked: true });
    await clock.wait(PUT_BACK_PAUSE_MS);
  }
  return false;
}
