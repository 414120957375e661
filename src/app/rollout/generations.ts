/** The identity of a group's decisions: the newest registered generation, compared with this daemon's own. */
import { decisionHash } from '../../domain/evaluate/decision-version.ts';
import type { Rules } from '../../ports/rules.ts';
import type { DecisionIdentity, Generation, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import type { CompiledRules, CurrentRules } from '../rules.ts';

export interface KnownGenerations {
  /** The version of the engine that decides here. */
  readonly decisionVersion: number;
  /** The number of this daemon's generation, 0 where it could not be registered; undefined while nothing may be written by it. */
  generation: number | undefined;
  /** The one that another daemon has made current since. */
  newer: Generation | undefined;
  /** The highest that was ever seen: it is put back into a store that came back without it. */
  newest: Generation | undefined;
  /** That the store has lost it was logged, and it has not been found there since. */
  isLossLogged: boolean;
}

export interface GenerationsDeps {
  sets: KnownGenerations;
  rules: CurrentRules;
  store: Pick<Store, 'generation' | 'raiseGeneration' | 'restoreGeneration'>;
  telemetry: Telemetry;
}

export interface CompareGenerationsDeps extends GenerationsDeps {
  storeWatch: StoreWatch;
}

type Identity = Required<DecisionIdentity>;

/** The identity of decisions by these rules, with the engine of this daemon. */
export function identityOf({ decisionVersion }: Pick<KnownGenerations, 'decisionVersion'>, rules: Rules): Identity {
  const { hash: setHash } = rules.policies;
  return { setHash, decisionHash: decisionHash(setHash, rules, decisionVersion), decisionVersion };
}

/** Of the current rules: asked for before each write. */
const identities = new WeakMap<CompiledRules, Identity>();

/** The identity of the current decisions. */
export function currentIdentity({ sets, rules }: Pick<GenerationsDeps, 'sets' | 'rules'>): Identity {
  const { current } = rules;
  const known = identities.get(current);
  if (known?.decisionVersion === sets.decisionVersion) return known;
  const identity = identityOf(sets, { ...current, policies: current.policies.set });
  identities.set(current, identity);
  return identity;
}

/**
 * Registers the rules that this daemon is about to decide by: from then on the others write nothing until they have them too. If that
 * fails, because of a newer engine or of `over`, this daemon is superseded.
 */
export async function registerGeneration(deps: GenerationsDeps, own: Identity, over?: number): Promise<void> {
  const { sets, store } = deps;
  // The new number is then above all that are known, also in a store that came back older.
  if (sets.newest) await store.restoreGeneration(sets.newest);
  takeNote(deps, await store.raiseGeneration(own, over), own);
}

/** Learns if another daemon of the group has loaded other rules since; logged at each change. */
export async function compareGenerations(deps: CompareGenerationsDeps): Promise<void> {
  const { sets } = deps;
  if (sets.generation === undefined) return;
  const latest = await latestGeneration(deps);
  if (latest === undefined) return;
  const own = currentIdentity(deps);
  if (isToBeRegistered(latest, own, sets)) await registerGeneration(deps, own, latest.number);
  else takeNote(deps, latest, own);
}

/** Invariant: the number only rises. A store that came back older would let superseded daemons write again. */
async function latestGeneration(deps: CompareGenerationsDeps): Promise<Generation | undefined> {
  const { sets, store, storeWatch, telemetry } = deps;
  let stored = await store.generation();
  if (stored === undefined) {
    await storeWatch.check();
    stored = await store.generation();
  }
  const { newest, isLossLogged } = sets;
  sets.isLossLogged = newest !== undefined && lacks(stored, newest);
  if (!newest || !sets.isLossLogged) return stored;
  const restored = await store.restoreGeneration(newest);
  if (isLossLogged) return restored;
  const { setHash: hash, number: generation } = newest;
  const message = `the store had lost which policies and settings are the newest (policy set ${short(hash)}): it is written back`;
  telemetry.log.warn({ event: 'ebb.generation_restored', hash, generation }, message);
  return restored;
}

/** A daemon of 0.1.0 stores only the fields that it knows of a generation. */
function lacks(stored: Generation | undefined, newest: Generation): boolean {
  if (stored === undefined || stored.number !== newest.number) return (stored?.number ?? 0) < newest.number;
  return stored.setHash === newest.setHash && stored.decisionHash === undefined && newest.decisionHash !== undefined;
}

/** Enough of a hash to tell sets apart in a sentence. */
export function short(hash: string): string {
  return hash.slice(0, 12);
}

/**
 * An older engine took over while this daemon was silent: it does not supersede one that runs. And a daemon of 0.1.0 registers policies
 * without settings: a daemon with the same policies adds them, but not one that another daemon with the same policies has superseded.
 */
function isToBeRegistered(latest: Generation, own: Identity, { newer }: KnownGenerations): boolean {
  if (latest.decisionVersion !== undefined && latest.decisionVersion < own.decisionVersion) return true;
  return latest.decisionHash === undefined && latest.setHash === own.setHash && newer?.setHash !== own.setHash;
}

function takeNote({ sets, telemetry: { log } }: GenerationsDeps, latest: Generation, own: Identity): void {
  const before = sets.newer;
  if (latest.number >= (sets.newest?.number ?? 0)) sets.newest = latest;
  sets.generation ??= 0;
  if (latest.decisionHash === own.decisionHash) sets.generation = latest.number;
  if (latest.number <= sets.generation) {
    sets.newer = undefined;
    if (before)
      log.info({ event: 'ebb.policies_current' }, 'the policies and settings of this daemon are the newest again');
    return;
  }
  sets.newer = latest;
  if (latest.number === before?.number) return;
  const { setHash: hash, number: generation, decisionVersion } = latest;
  log.warn({ event: 'ebb.superseded', hash, generation, decisionVersion }, describeNewer(sets, latest));
}

/** Why this daemon writes nothing. */
export function describeNewer(
  { decisionVersion: own }: Pick<KnownGenerations, 'decisionVersion'>,
  { setHash, decisionVersion = 0 }: Generation,
): string {
  const set = `policy set ${short(setHash)}`;
  if (decisionVersion > own)
    return `a daemon of a newer release decides for the group (${set}, decision version ${decisionVersion}, here ${own}): this one writes nothing while one of that release runs`;
  return `another daemon has loaded newer policies or settings (${set}): this one writes nothing until it has loaded them too`;
}
