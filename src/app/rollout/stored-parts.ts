/**
 * Stores the policies of teams as they were last in effect. Without them, a daemon that starts while a team's newer files are staged or can't be
 * read would have no policies of that team.
 */
import type { ConnectionSource, Policy, PolicySet } from '../../domain/policy/policy.ts';
import { policySet } from '../../domain/policy/policy-set.ts';
import { hasUnloaded, type TeamScope, teamPart, unloadedPart, withScopes } from '../../domain/policy/team-parts.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import { sharedDocuments } from '../shared-documents.ts';
import type { SetsDeps } from './write-permission.ts';

interface StoredPart {
  hash: string;
  /** The decision version of the engine that compiled the policies; another version ignores the part. */
  decisionVersion: number;
  policies: readonly Policy[];
  sources: readonly (readonly [string, ConnectionSource])[];
}

/** The stored parts, by team. Raise the version when the form of a policy changes without a new decision version. */
const PARTS = sharedDocuments<StoredPart>('team-policies', 1);

/** A part with more characters of JSON is not stored. */
const MAX_LENGTH = 1_000_000;

/** Parts are stored again after this time, in real milliseconds: a store may lose its newest data unnoticed, as in a failover. */
const STORE_AGAIN_MS = 600_000;

interface StorePartsDeps extends SetsDeps {
  mode: Mode;
  store: Pick<DocumentStore, 'documents' | 'putDocument' | 'deleteDocuments'>;
  clock: Pick<Clock, 'monotonicMs'>;
  storeWatch: Pick<StoreWatch, 'lostAtMs'>;
}

/**
 * Returns a function to call in each round. It stores the parts in effect if they have changed, if the store has lost its data, and from time to
 * time, and deletes the parts of teams that are gone.
 */
export function createPartsWriter(deps: StorePartsDeps): () => Promise<void> {
  let stored: { set?: PolicySet; teams?: readonly TeamScope[]; lostAtMs?: number | undefined } = {};
  let storedAtMonotonicMs = 0;
  return async () => {
    const { sets, rules, mode, clock, store, storeWatch } = deps;
    const { teams, policies } = rules.current;
    const { set } = policies;
    const lostAtMs = storeWatch.lostAtMs();
    // A superseded daemon has other policies than its group.
    if (mode === 'observe' || sets.generation === undefined || sets.newer) return;
    const nowMonotonicMs = clock.monotonicMs();
    const isStored = stored.set === set && stored.teams === teams && stored.lostAtMs === lostAtMs;
    if (isStored && nowMonotonicMs - storedAtMonotonicMs < STORE_AGAIN_MS) return;
    for (const { name } of teams) await storePart(deps, name, teamPart(set, name));
    const goneTeams = [...(await PARTS.all(store)).keys()].filter((team) => teams.every(({ name }) => name !== team));
    if (goneTeams.length > 0) await PARTS.delete(store, goneTeams);
    stored = { set, teams, lostAtMs };
    storedAtMonotonicMs = nowMonotonicMs;
  };
}

async function storePart({ sets, store }: StorePartsDeps, team: string, part: PolicySet): Promise<void> {
  if (hasUnloaded(part)) return;
  const { hash, policies } = part;
  const { decisionVersion } = sets;
  const sources = [...part.sources];
  const value: StoredPart = { hash, decisionVersion, policies, sources };
  // A connection string in a policy file may contain a password.
  const hasSecret = sources.some(([, source]) => source.from === 'postgres' && source.dsn.from === 'text');
  if (hasSecret || JSON.stringify(value).length > MAX_LENGTH) await PARTS.delete(store, [team]);
  else await PARTS.put(store, team, value);
}

/** Returns the parts of these teams that were last in effect, limited to the present scopes; an {@link unloadedPart} where none is stored. */
export async function lastParts(
  { sets, store }: Pick<SetsDeps, 'sets'> & { store: Pick<DocumentStore, 'documents'> },
  teams: readonly TeamScope[],
): Promise<Map<string, PolicySet>> {
  const stored = teams.length === 0 ? new Map<string, StoredPart>() : await PARTS.all(store);
  return new Map(teams.map((team) => [team.name, partOf(team, stored.get(team.name), sets) ?? unloadedPart(team)]));
}

function partOf(
  team: TeamScope,
  stored: StoredPart | undefined,
  { decisionVersion }: SetsDeps['sets'],
): PolicySet | undefined {
  if (stored?.decisionVersion !== decisionVersion) return undefined;
  const part = policySet(stored.policies, new Map(stored.sources), team.name);
  if (part.hash !== stored.hash) return undefined;
  return policySet(withScopes(part, [team]).policies, part.sources, team.name);
}
