/** Each daemon asks the guards of its policies, and decides by their latest answers. */

import { type DatedVerdict, datedVerdict, guardKey } from '../../domain/guards/state.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SeriesSources } from '../../ports/guards.ts';
import { type RunInBackground, type Running, StoppedError } from '../background.ts';
import type { StoreLosses } from '../shared-documents.ts';
import { createGuardAsker, type GuardAnswer } from './ask.ts';
import { askedOf } from './observed.ts';
import { ANSWERS, type StoredAnswer } from './stored-states.ts';
import { createGuardWatches, type GuardWatchesDeps } from './watches.ts';

/** The longest wait for all answers about one guard, in real milliseconds. */
const MAX_ROUND_MS = 20_000;

interface DatedAnswer extends GuardAnswer {
  atMs: number;
}

export interface GuardVerdicts {
  /** Returns a guard's latest verdict on a compute: `unknown` if the verdict is old, undefined if there is none. */
  of(policy: GuardPolicy, computeId: string, nowMs: number): DatedVerdict | undefined;
  set(policy: GuardPolicy, answer: DatedAnswer): void;
  /** Forgets the answers of all other guards. */
  keepOnly(policies: readonly GuardPolicy[]): void;
  /** The latest answers, by guard. */
  stored(): ReadonlyMap<string, StoredAnswer>;
}

export function createGuardVerdicts(): GuardVerdicts {
  const answers = new Map<string, DatedAnswer & { guard: string }>();
  return {
    of(policy, computeId, nowMs) {
      const { atMs, verdicts } = answers.get(guardKey(policy)) ?? {};
      const verdict = verdicts?.get(computeId);
      return verdict && atMs !== undefined ? datedVerdict(verdict, atMs, nowMs) : undefined;
    },
    set: (policy, answer) => void answers.set(guardKey(policy), { ...answer, guard: policy.name }),
    keepOnly(policies) {
      const keptKeys = new Set(policies.map(guardKey));
      for (const key of answers.keys()) if (!keptKeys.has(key)) answers.delete(key);
    },
    stored: () =>
      new Map(
        [...answers].map(([key, { guard, atMs, verdicts }]) => [
          guard,
          { key, atMs, verdicts: Object.fromEntries(verdicts) },
        ]),
      ),
  };
}

export interface GuardRoundsDeps extends GuardWatchesDeps {
  clock: Clock;
  series: SeriesSources;
  guards: GuardVerdicts;
  storeWatch: StoreLosses;
  runInBackground: RunInBackground;
  /** Interval between rounds, in real milliseconds. */
  rhythm: { guardsMs: number };
}

/** Asks every enforcing guard at an interval, with one query for all of its awake computes. The leader's watches use the same answers. */
export function startGuardRounds(deps: GuardRoundsDeps): Running {
  const { clock, rules, series, guards, telemetry } = deps;
  const asker = createGuardAsker(series);
  const watches = createGuardWatches(deps);
  const failing = new Map<string, string>();
  const stop = new AbortController();
  let mayHaveStoredAnswers = true;

  async function round(): Promise<void> {
    const { policies } = rules.current;
    const enforcing = enforcingGuards(policies);
    guards.keepOnly(enforcing.map(({ policy }) => policy));
    await watches.keepOnly(enforcing.map(({ policy }) => policy));
    telemetry.metrics.clear('ebb_guard_computes');
    await Promise.all(enforcing.map((one) => askOne(policies, one)));
    // Without guards, the document is emptied once.
    if (stop.signal.aborted || !deps.leaderLease.isHeld() || (enforcing.length === 0 && !mayHaveStoredAnswers)) return;
    await ANSWERS.keep(deps.store, Object.fromEntries(guards.stored()));
    mayHaveStoredAnswers = enforcing.length > 0;
  }

  async function askOne(policies: CompiledPolicies, { policy, index }: IndexedGuard): Promise<void> {
    const source = policies.set.sources.get(policy.source);
    if (!source) return;
    const nowMs = clock.now();
    const selected = [...deps.fleet.cachedProjects()]
      .flatMap((project) => project.computes)
      .filter((compute) => policies.selects(index, compute, nowMs));
    const computes = askedOf(selected);
    const loweredAtMs = watches.lowered(computes, nowMs);
    const signal = AbortSignal.any([stop.signal, clock.timeout(MAX_ROUND_MS)]);
    const answer = await asker.ask({ guard: policy, source, computes, loweredAtMs, nowMs, signal });
    if (stop.signal.aborted) return;
    guards.set(policy, { ...answer, atMs: nowMs });
    report(deps, failing, policy.name, answer);
    await watches.advance(policy, selected, answer, nowMs);
  }

  // The leader's lease is lost with the store's data, so by now a daemon that remembers no watches may lead.
  deps.storeWatch.onLoss(async () => {
    mayHaveStoredAnswers = true;
    await watches.writeBack();
    const answers = guards.stored();
    if (answers.size > 0) await ANSWERS.fill(deps.store, Object.fromEntries(answers));
  });
  const rounds = clock.every(deps.rhythm.guardsMs, () => deps.runInBackground('guards', round));
  return {
    async close() {
      stop.abort(new StoppedError());
      await rounds.close();
    },
  };
}

interface IndexedGuard {
  policy: GuardPolicy;
  index: number;
}

function enforcingGuards({ set }: CompiledPolicies): IndexedGuard[] {
  return set.policies.flatMap((one, index) => {
    const policy = asKind(one, 'guard');
    return policy?.mode === 'enforce' ? [{ policy, index }] : [];
  });
}

/** Exports the states of computes, counts errors, and logs when a source begins to fail and when it answers again. */
function report(
  { telemetry: { log, metrics } }: GuardRoundsDeps,
  failing: Map<string, string>,
  guard: string,
  { error, verdicts }: GuardAnswer,
): void {
  const states = [...verdicts.values()].map(({ state }) => state);
  for (const state of ['healthy', 'bad', 'unknown'] as const) {
    metrics.set('ebb_guard_computes', { guard, state }, states.filter((one) => one === state).length);
  }
  if (error) metrics.increment('ebb_guard_errors_total', { guard, code: error.code });
  const before = failing.get(guard);
  if (before === error?.code) return;
  if (!error) {
    failing.delete(guard);
    log.info({ event: 'ebb.guard_recovered', guard }, `guard ${guard} gets answers again`);
    return;
  }
  failing.set(guard, error.code);
  log.warn(
    { event: 'ebb.guard_failed', guard, code: error.code },
    `guard ${guard} gets no answer, so awake computes are not lowered under it: ${error.message}`,
  );
}
