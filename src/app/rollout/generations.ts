/** Generations number the rules by which a group decides. Each daemon compares the newest registered generation with its own. */
import { decisionHash } from '../../domain/evaluate/decision-version.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import { hasUnloaded, unloadedTeams } from '../../domain/policy/team-parts.ts';
import type { Rules } from '../../ports/rules.ts';
import type { DecisionIdentity, Generation, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import type { CompiledRules, CurrentRules } from '../rules.ts';

/** A daemon's own generation, and the others that it has seen. */
export interface GenerationState {
  readonly decisionVersion: number;
  /** The number of this daemon's generation; 0 if it could not be registered, undefined while this daemon may not write by its rules. */
  generation: number | undefined;
  /** The generation by which another daemon has superseded this one. */
  newer: Generation | undefined;
  /** The highest generation that this daemon has seen. It is stored again if the store has lost it. */
  newest: Generation | undefined;
  /** True once it was logged that the store lacks `newest`, until the store has it again. */
  isLossLogged: boolean;
}

interface GenerationsDeps {
  sets: GenerationState;
  rules: CurrentRules;
  store: Pick<Store, 'generation' | 'raiseGeneration' | 'restoreGeneration'>;
  telemetry: Telemetry;
}

export interface CompareGenerationsDeps extends GenerationsDeps {
  storeWatch: StoreWatch;
}

type Identity = Required<DecisionIdentity>;

/** Returns what identifies the decisions by these rules: policies, settings that decide, and the decision version of this engine. */
export function identityOf({ decisionVersion }: Pick<GenerationState, 'decisionVersion'>, rules: Rules): Identity {
  const { hash: setHash } = rules.policies;
  return { setHash, decisionHash: decisionHash(setHash, rules, decisionVersion), decisionVersion };
}

/** The identities of rules; cached, since they are needed before each write. */
const identities = new WeakMap<CompiledRules, Identity>();

export function currentIdentity({ sets, rules }: Pick<GenerationsDeps, 'sets' | 'rules'>): Identity {
  const { current } = rules;
  const cached = identities.get(current);
  if (cached?.decisionVersion === sets.decisionVersion) return cached;
  const identity = identityOf(sets, { ...current, policies: current.policies.set });
  identities.set(current, identity);
  return identity;
}

/**
 * Registers the rules that this daemon is about to decide by; from then on other daemons write nothing until they have the same rules. This
 * daemon is superseded instead if a daemon with a newer engine has registered, or if the newest generation is not the one to replace.
 */
export async function registerGeneration(deps: GenerationsDeps, own: Identity, onlyReplacing?: number): Promise<void> {
  const { sets, store } = deps;
  // Ensures that the new number is above all known ones, even if the store came back with an older state.
  if (sets.newest) await store.restoreGeneration(sets.newest);
  noteGeneration(deps, await store.raiseGeneration(own, onlyReplacing), own);
}

/** Compares the newest generation with this daemon's own, and notes and logs whether this daemon is superseded. */
export async function compareGenerations(deps: CompareGenerationsDeps): Promise<void> {
  const { sets, rules } = deps;
  if (sets.generation === undefined) return;
  const latest = await latestGeneration(deps);
  if (latest === undefined) return;
  const own = currentIdentity(deps);
  const mayReplace = !hasUnloaded(rules.current.policies.set);
  if (mayReplace && mustRegisterAgain(latest, own, sets)) await registerGeneration(deps, own, latest.number);
  else noteGeneration(deps, latest, own);
}

/** Returns the newest generation. Restores it if the store has an older one, with which superseded daemons would write again. */
async function latestGeneration(deps: CompareGenerationsDeps): Promise<Generation | undefined> {
  const { sets, store, storeWatch, telemetry } = deps;
  let stored = await store.generation();
  if (stored === undefined) {
    await storeWatch.check();
    stored = await store.generation();
  }
  const { newest, isLossLogged } = sets;
  sets.isLossLogged = newest !== undefined && isLost(stored, newest);
  if (!newest || !sets.isLossLogged) return stored;
  const restored = await store.restoreGeneration(newest);
  if (isLossLogged) return restored;
  const { setHash: hash, number: generation } = newest;
  const message = `the store had lost which policies and settings are the newest (policy set ${shortHash(hash)}): it is written back`;
  telemetry.log.warn({ event: 'ebb.generation_restored', hash, generation }, message);
  return restored;
}

/** Returns true if the store has an older generation than `newest`, or `newest` without the decision hash, which 0.1.0 does not store. */
function isLost(stored: Generation | undefined, newest: Generation): boolean {
  if (stored === undefined || stored.number !== newest.number) return (stored?.number ?? 0) < newest.number;
  return stored.setHash === newest.setHash && stored.decisionHash === undefined && newest.decisionHash !== undefined;
}

/**
 * Returns true if this daemon should register its rules over the latest generation. One case is a generation by an older engine, which took over
 * while this daemon was silent. The other is a generation of release 0.1.0, which registers policies without settings: a daemon with the same
 * policies adds its settings, unless another daemon with these policies has superseded it.
 */
function mustRegisterAgain(latest: Generation, own: Identity, { newer }: GenerationState): boolean {
  if (latest.decisionVersion !== undefined && latest.decisionVersion < own.decisionVersion) return true;
  return latest.decisionHash === undefined && latest.setHash === own.setHash && newer?.setHash !== own.setHash;
}

function noteGeneration({ sets, rules, telemetry: { log } }: GenerationsDeps, latest: Generation, own: Identity): void {
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
  log.warn({ event: 'ebb.superseded', hash, generation, decisionVersion }, describeNewer({ sets, rules }, latest));
}

export function describeNewer(
  { sets, rules }: { sets: Pick<GenerationState, 'decisionVersion'>; rules: CurrentRules },
  { setHash, decisionVersion = 0 }: Generation,
): string {
  const own = sets.decisionVersion;
  const unloaded = unloadedTeams(rules.current.policies.set);
  const set = `policy set ${shortHash(setHash)}`;
  if (decisionVersion > own)
    return `a daemon of a newer release decides for the group (${set}, decision version ${decisionVersion}, here ${own}): this one writes nothing while one of that release runs`;
  if (unloaded.length > 0)
    return `another daemon has the policies of ${unloaded.join(', ')} (${set}), which are not loaded here: this one writes nothing while that one runs`;
  return `another daemon has loaded newer policies or settings (${set}): this one writes nothing until it has loaded them too`;
}
