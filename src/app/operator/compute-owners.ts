import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import { readReadings } from '../readings/read-readings.ts';
import type { OperatorParts } from './parts.ts';

/**
 * Returns a function for the owner of a compute: by the daemon, or else by the stored readings, and the policies and rules of this machine. It
 * returns undefined for computes that neither knows.
 */
export async function computeOwners(parts: OperatorParts): Promise<(computeId: string) => string | undefined> {
  const known = parts.daemon ? knownTo(parts.daemon) : await knownToStore(parts);
  const ownerOf = ownersOf(known);
  const computeById = new Map(known.computes.map((compute) => [compute.computeId, compute]));
  return (computeId) => {
    const compute = computeById.get(computeId);
    return compute && ownerOf(compute);
  };
}

function knownTo(daemon: NonNullable<OperatorParts['daemon']>) {
  const computes = [...daemon.fleet.evaluatedComputes()].map(({ compute }) => compute);
  return { rules: daemon.owners(), policies: daemon.policies(), computes };
}

async function knownToStore({ store, policies, owners = [] }: OperatorParts) {
  const { readings } = await readReadings(store);
  const loaded = await policies?.();
  return {
    rules: owners,
    policies: loaded && compilePolicies(loaded.set),
    computes: [...readings.values()].flatMap(({ computes }) => computes),
  };
}
