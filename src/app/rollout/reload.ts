import { decisionHash } from '../../domain/evaluate/decision-version.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import { changedTrials, removedProtections } from '../../domain/policy/policy-set.ts';
import { hasUnloaded, NO_TEAM, teamPart, withScopes } from '../../domain/policy/team-parts.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { DaemonDocument } from '../../ports/documents.ts';
import type { Rules, RulesReading, RulesSource } from '../../ports/rules.ts';
import type { DecisionIdentity, DocumentStore, Generation } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type RunInBackground, StoppedError } from '../background.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import { type PauseQueuesDeps, pauseQueues } from '../group/pause-queues.ts';
import { sharedDocuments } from '../shared-documents.ts';
import { hasReadyWaves, readReadyWaves } from '../stored-waves.ts';
import { readBudgets, readReleases, spansOf } from '../usage/budget-store.ts';
import { readTrialStops } from '../usage/trial-stops.ts';
import { type ActivateDeps, advanceRules, currentRules, mayTakeOver, swapRules, withRulesOf } from './activate.ts';
import { type DelayedReading, describeDelay, isBeingWritten, noteChanges } from './delayed-reading.ts';
import {
  type CompareGenerationsDeps,
  compareGenerations,
  currentIdentity,
  identityOf,
  registerGeneration,
} from './generations.ts';
import { createPartsWriter } from './stored-parts.ts';
import { exportSets, ownerField, type SetsDeps, type ShowSetsDeps, stateOf } from './write-permission.ts';

/** Keeps a daemon's rules up to date with its files and its group. */
export interface Reloading {
  /** Reads all rules again, whether or not their files have changed. Resolves after the round. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

export interface ReloadDeps extends ActivateDeps, CompareGenerationsDeps, ShowSetsDeps, PauseQueuesDeps {
  sets: ActivateDeps['sets'];
  store: ActivateDeps['store'];
  storeClock: StoreClock;
  runInBackground: RunInBackground;
  /** Interval between checks of the policy files, and of the group's state in the store, in real milliseconds. */
  rhythm: ActivateDeps['rhythm'] & { rulesMs: number };
}

/** Every `rhythm.rulesMs`, checks for changed files, staged rules that may become current, and a newer generation of the group. */
export function startReloading(deps: ReloadDeps, source: RulesSource | undefined): Reloading {
  const stop = new AbortController();
  let last = Promise.resolve();
  const updatePausedQueues = pauseQueues(deps);
  const takeOver = createTakeOver(deps);
  const storeParts = createPartsWriter(deps);
  let needRestart = '';

  async function readRules(from: RulesSource, isRequested: boolean): Promise<void> {
    const reading = await from.read();
    if (reading.ok) {
      const names = reading.needRestart.join(', ');
      if (names !== '' && names !== needRestart) logNeedsRestart(deps, reading.needRestart);
      needRestart = names;
    }
    await takeReading(deps, reading, { isRequested, signal: stop.signal });
  }

  async function round(isRequested: boolean): Promise<void> {
    if (stop.signal.aborted) return;
    // If this machine's clock was set, compares it again: queues and gauges use the last comparison.
    await deps.storeClock.excessiveOffsetMs();
    await refreshLeaderDecisions(deps);
    if (source && (isRequested || (await source.changed()))) await readRules(source, isRequested);
    await takeDelayed(deps, stop.signal);
    await advanceRules(deps, stop.signal);
    await compareGenerations(deps);
    await takeOver(stop.signal);
    await storeParts();
  }

  function enqueue(isRequested: boolean): Promise<void> {
    last = last.then(async () => {
      await deps.runInBackground('reload', () => round(isRequested));
      updatePausedQueues();
      exportSets(deps);
    });
    return last;
  }

  updatePausedQueues();
  const rounds = deps.clock.every(deps.rhythm.rulesMs, () => enqueue(false));
  return {
    reload: () => enqueue(true),
    async close() {
      stop.abort(new StoppedError());
      await rounds.close();
      await last;
    },
  };
}

function logNeedsRestart({ telemetry }: { telemetry: Telemetry }, settings: readonly string[]): void {
  const message = `changed settings take effect only after a restart: ${settings.join(', ')}`;
  telemetry.log.warn({ event: 'ebb.restart_needed', settings }, message);
}

/**
 * Reads the leader's decisions from the store: active steps of budgets, stopped trials, ready waves. If they have changed, the rules are replaced
 * and the fleet is evaluated again, as after a reload. Decisions that the store has lost stay in effect.
 */
export async function refreshLeaderDecisions({
  rules,
  sets,
  store,
}: SetsDeps & { store: Pick<DocumentStore, 'document'> }): Promise<void> {
  const { policies } = rules.current.policies.set;
  const waves = hasReadyWaves(policies) ? await readReadyWaves(store) : undefined;
  const hasBudgets = policiesOfKind(policies, 'budget').length > 0;
  const [states, releases] = hasBudgets ? await Promise.all([readBudgets(store), readReleases(store)]) : [];
  const mayStop = policiesOfKind(policies, 'trial').some(({ stopIf }) => stopIf !== undefined);
  const stops = mayStop ? await readTrialStops(store) : undefined;
  rules.budgets = hasBudgets
    ? { states: states ?? rules.budgets?.states, releases: releases ?? rules.budgets?.releases }
    : undefined;
  // The rules may have been swapped while the store was read.
  const { current } = rules;
  const { budgetSteps, trialStops, readyWaves } = current.policies;
  const after = {
    budgetSteps: states ? spansOf(states) : budgetSteps,
    trialStops: stops ?? trialStops,
    readyWaves: waves ?? readyWaves,
  };
  if (JSON.stringify(after) === JSON.stringify({ budgetSteps, trialStops, readyWaves })) return;
  rules.current = { ...current, policies: { ...current.policies, ...after } };
  sets.needsReevaluation = true;
}

/** Reports of a group's daemons about themselves, by the random name of the daemon. */
export const REPORTS = sharedDocuments<DaemonDocument>('daemons', 1);

/* Taking over: if no daemon with the newest generation is left, another one registers its own. Otherwise nobody would write. */

/** A daemon is live for this long after its last report; daemons report at least every 10 s. */
const LIVE_MS = RECOVERY.leaderLeaseMs;
/**
 * If no live daemon has had the newest generation for this long, another daemon takes over. Daemons of release 0.1.0 report only every 30 s, so
 * the gap in which they do not count as live must be shorter.
 */
const ABANDONED_MS = 2 * RECOVERY.leaderLeaseMs;

/** The reports seen since a newer generation superseded this daemon. Times are in this daemon's monotonic time. */
interface GenerationWatch {
  number: number;
  /** The last report of each daemon, and when this daemon first saw that report. */
  reports: Map<string, { text: string; atMs: number }>;
  checkedAtMs: number;
  /** When this daemon last saw a live daemon that has the generation, or one newer than this daemon's own. */
  lastHeldAtMs: number;
}

/** Returns a function to call in each round. It takes over once no live daemon has had the newest generation for {@link ABANDONED_MS}. */
function createTakeOver(deps: ReloadDeps): (signal: AbortSignal) => Promise<void> {
  const { sets, store, clock, leaderLease } = deps;
  let watch: GenerationWatch | undefined;

  async function isAbandoned(newest: Generation): Promise<boolean> {
    // If no other daemon has the store, its generation is of a daemon that ran here before.
    if (leaderLease.isAlone) return true;
    const reports = await REPORTS.all(store);
    const nowMs = clock.monotonicMs();
    watch = nextWatch(nowMs, newest, watch);
    for (const [name, report] of reports) {
      const hasNewerGeneration = (report.generation ?? 0) > (sets.generation ?? 0);
      if (isLive(watch, name, report) && (hasNewerGeneration || decidesByGeneration(report, newest)))
        watch.lastHeldAtMs = nowMs;
    }
    return nowMs - watch.lastHeldAtMs >= ABANDONED_MS;
  }

  return async (signal) => {
    const { newer } = sets;
    const own = currentIdentity(deps);
    const canTakeOver = newer !== undefined && (await isAbandoned(newer));
    if (!newer) watch = undefined;
    if (!canTakeOver || sets.takeOver?.decisionHash !== own.decisionHash) sets.takeOver = undefined;
    if (!canTakeOver || !(await mayTakeOver(deps, own, signal))) return;
    await registerGeneration(deps, own, newer.number);
    if (sets.newer) return;
    sets.takeOver = undefined;
    logTakeOver(deps, newer, own);
  };
}

function logTakeOver({ telemetry, sets }: ReloadDeps, from: Generation, own: DecisionIdentity): void {
  const fields = { hash: own.setHash, generation: sets.generation, from: from.setHash };
  const message = `no daemon is left that has the newest policies and settings (policy set ${shortHash(from.setHash)}): those of this daemon apply again (policy set ${shortHash(own.setHash)})`;
  telemetry.log.warn({ event: 'ebb.generation_taken_over', ...fields }, message);
}

/** Continues the watch. Starts a new one for another generation, and after an outage of the store, in which no daemon could report. */
function nextWatch(nowMs: number, { number }: Generation, before: GenerationWatch | undefined): GenerationWatch {
  if (before?.number === number && nowMs - before.checkedAtMs < LIVE_MS) return { ...before, checkedAtMs: nowMs };
  return { number, reports: new Map(), checkedAtMs: nowMs, lastHeldAtMs: nowMs };
}

/** Returns true if the daemon's report has changed lately, by this daemon's own clock. */
function isLive(
  { reports, checkedAtMs: nowMs }: GenerationWatch,
  name: string,
  { last_seen: text }: DaemonDocument,
): boolean {
  const last = reports.get(name);
  const report = last?.text === text ? last : { text, atMs: nowMs };
  reports.set(name, report);
  return nowMs - report.atMs < LIVE_MS;
}

/** Returns true for a daemon that decides by the generation and may write. A daemon of release 0.1.0 reports only the hash of its policies. */
function decidesByGeneration(
  { mode, set_hash, decision_hash }: DaemonDocument,
  { setHash, decisionHash }: Generation,
): boolean {
  if (mode !== 'enforce') return false;
  if (decision_hash === undefined) return set_hash === setHash;
  return decision_hash !== null && decision_hash === decisionHash;
}

/** The most problems in one log line; `ebb validate` shows all. */
const MAX_PROBLEMS_LOGGED = 20;

type GoodReading = RulesReading & { ok: true };

/**
 * Applies a reading: valid rules become current if they may, broken rules change nothing. While somebody may still be writing the files, the rules
 * wait, unless a person has requested the reading (`isRequested`).
 */
export async function takeReading(
  deps: ActivateDeps,
  reading: RulesReading,
  { isRequested, signal }: { isRequested: boolean; signal: AbortSignal },
): Promise<void> {
  const { sets, clock } = deps;
  if (isRequested) sets.changedAt.clear();
  else if (reading.changes) noteChanges(sets.changedAt, reading.changes, clock.monotonicMs());
  const wasDelayed = sets.delayed;
  sets.delayed = undefined;
  if (!reading.ok) {
    noteProblems(deps, NO_TEAM, reading.problems);
    return;
  }
  const isChanged = fingerprint(reading.rules) !== fingerprint(currentRules(deps));
  if (isChanged && isBeingWritten(sets.changedAt, clock.monotonicMs())) delayReading(deps, reading, wasDelayed);
  else await takeRules(deps, reading, signal);
}

/** Applies a delayed reading once its files have been unchanged for a while. Called in each round. */
export async function takeDelayed(deps: ActivateDeps, signal: AbortSignal): Promise<void> {
  const { sets, clock } = deps;
  const { delayed } = sets;
  if (!delayed || isBeingWritten(sets.changedAt, clock.monotonicMs())) return;
  sets.delayed = undefined;
  await takeRules(deps, delayed.reading, signal);
}

/** Delays a reading, with its settings and the scopes of teams. Its problems are reported at once. */
function delayReading(deps: ActivateDeps, reading: GoodReading, before: DelayedReading | undefined): void {
  const vanished: string[] = [];
  for (const { team, old, part, problems } of partsOf(deps, reading)) {
    noteProblems(deps, team, problems);
    if (problems.length === 0 && !hasUnloaded(old)) vanished.push(...removedProtections(old.policies, part.policies));
  }
  deps.sets.delayed = { reading, vanished };
  const { hash } = reading.rules.policies;
  if (before?.reading.rules.policies.hash === hash) return;
  deps.telemetry.log.info({ event: 'ebb.policies_delayed', hash, vanished }, describeDelay(vanished));
}

/** Splits a reading by team, so that problems and waits of one part don't affect the others. The part that belongs to no team comes first. */
function partsOf({ rules: { current }, clock }: ActivateDeps, { rules, broken }: GoodReading) {
  const before = current.policies.set;
  const teams = new Set([...rules.teams.map(({ name }) => name), ...before.policies.flatMap(({ team }) => team ?? [])]);
  return [NO_TEAM, ...teams].map((team) => {
    const [old, part] = [teamPart(before, team), teamPart(rules.policies, team)];
    const problems = broken?.get(team) ?? changedTrials(old.policies, part.policies, clock.now());
    return { team, old, part, problems };
  });
}

async function takeRules(deps: ActivateDeps, reading: GoodReading, signal: AbortSignal): Promise<void> {
  const { sets, telemetry } = deps;
  const { rules, warnings } = reading;
  // If the store is unavailable, the next round takes the reading: the files would not be read again before their next change.
  sets.delayed = { reading, vanished: [] };
  await rescope(deps, rules.teams);
  sets.delayed = undefined;
  const parts = partsOf(deps, reading);
  const isNews = parts.some(
    ({ team, old, part: { hash } }) => hash !== old.hash && hash !== stateOf(sets, team).candidate?.rules.policies.hash,
  );
  if (warnings.length > 0 && isNews) {
    telemetry.log.warn({ event: 'ebb.policy_warnings', hash: rules.policies.hash, warnings }, warnings.join('; '));
  }
  for (const { team, part, problems } of parts) {
    noteProblems(deps, team, problems);
    if (problems.length === 0) offerPart(deps, team, { ...rules, policies: part });
  }
  const teams = new Set(parts.map(({ team }) => team));
  for (const team of sets.teams.keys()) if (!teams.has(team)) sets.teams.delete(team);
  await advanceRules(deps, signal);
}

/**
 * Applies changed scopes of teams. Scopes need no approval, and also limit policies whose newest version is broken. A part that was staged
 * under an older scope is dropped, since an approval of that part must not make it current beyond the new scope.
 */
async function rescope(deps: ActivateDeps, teams: Rules['teams']): Promise<void> {
  const { sets, rules } = deps;
  const scopeOf = (scopes: Rules['teams'], team: string) => JSON.stringify(scopes.find(({ name }) => name === team));
  for (const [team, state] of sets.teams) {
    if (state.candidate && scopeOf(state.candidate.rules.teams, team) !== scopeOf(teams, team))
      state.candidate = undefined;
  }
  const { set } = rules.current.policies;
  const policies = withScopes(set, teams);
  if (policies === set) return;
  const scoped = { ...currentRules(deps), policies };
  // Replaces only this daemon's own generation: another daemon may have registered newer policies meanwhile.
  if (sets.generation !== undefined) await registerGeneration(deps, identityOf(sets, scoped), sets.generation);
  swapRules(deps, scoped);
}

/** Makes a part of the rules a candidate, unless it is current; a part that differs only in what needs no approval becomes current at once. */
function offerPart(deps: ActivateDeps, team: string, rules: Rules): void {
  const state = stateOf(deps.sets, team);
  const before = teamPart(deps.rules.current.policies.set, team);
  const { hash } = rules.policies;
  // Settings come with the part that belongs to no team.
  const hasSameSettings = (one: Rules) => team !== NO_TEAM || settingsHash(deps, one) === settingsHash(deps, rules);
  const isCandidate = state.candidate?.rules.policies.hash === hash && hasSameSettings(state.candidate.rules);
  const isCurrent = hash === before.hash && hasSameSettings(currentRules(deps));
  // After its start, a daemon decides by policies that are not allowed yet. If the files return to these policies, the part still waits.
  const isUnapproved = team === NO_TEAM && deps.mode === 'enforce' && deps.sets.generation === undefined;
  if (isCandidate && state.candidate) state.candidate.rules = rules;
  else state.candidate = isCurrent && !isUnapproved ? undefined : { rules };
  const swapped = withRulesOf(deps, new Map([[team, rules]]));
  if (isCurrent && fingerprint(swapped) !== fingerprint(currentRules(deps))) swapRules(deps, swapped);
}

/** Returns a hash of the settings that influence decisions. */
function settingsHash({ sets }: ActivateDeps, rules: Rules): string {
  return decisionHash('', rules, sets.decisionVersion);
}

/** Returns a text that differs if two sets of rules differ in anything that matters to a daemon. */
function fingerprint({ policies, profiles, verified, costs, ...settings }: Rules): string {
  const files = policies.policies.map(({ file }) => file);
  const ofCosts = [costs.owners, costs.prices, [...costs.plans]];
  return JSON.stringify([policies.hash, files, [...profiles], [...verified], ofCosts, Object.entries(settings).sort()]);
}

function noteProblems({ sets, rules, telemetry }: ActivateDeps, team: string, problems: readonly string[]): void {
  const { hash } = rules.current.policies.set;
  const state = stateOf(sets, team);
  const before = state.problems;
  state.problems = problems;
  if (problems.join('\n') === before.join('\n')) return;
  const [first = '', ...others] = problems;
  if (problems.length === 0) {
    const what = team === NO_TEAM ? 'policies and settings' : `policies of ${team}`;
    telemetry.log.info({ event: 'ebb.policies_recovered', ...ownerField(team) }, `${what} can be read again`);
    return;
  }
  const fields = { ...ownerField(team), hash, problems: problems.slice(0, MAX_PROBLEMS_LOGGED) };
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const keptSet = team === NO_TEAM ? `policy set ${shortHash(hash)}` : `the present policy set of ${team}`;
  telemetry.log.error({ event: 'ebb.policies_refused', ...fields }, `${first}${more}; ${keptSet} stays current`);
}
