import { needsOf, withValidity } from '../domain/connections/connection-samples.ts';
import { type ConnectionHistory, type ConnectionSample, STALE_AFTER_MS } from '../domain/connections/connections.ts';
import type { ConnectionNeed } from '../domain/policy/directive.ts';
import { DEFAULT_SOURCE_EVERY_MS, type PolicySet } from '../domain/policy/policy.ts';
import type { FleetFacts } from '../ports/control-api.ts';
import type { ConnectionSample as StoredSample } from '../ports/store.ts';

/** Connections by compute id, as headroom is evaluated by them. */
type Connections = ReadonlyMap<string, ConnectionHistory>;

/**
 * What a fleet file says of connections, as if it had been so for as long as any policy looks back, and for each of their sources:
 * a file knows one moment only, and a plan made of it must not wait for more.
 */
export function connectionsOfFile(facts: FleetFacts, set: PolicySet, nowMs: number): Connections {
  const needs = needsOf(set.policies);
  const windowMs = Math.max(0, ...needs.map(({ scaleDownAfterMs }) => scaleDownAfterMs));
  const byCount = new Map<number, ConnectionHistory>();
  const known = new Map<string, ConnectionHistory>();
  for (const [computeId, { connections }] of facts) {
    if (connections === undefined) continue;
    const history = byCount.get(connections) ?? sameForAll(needs, steady(connections, nowMs, windowMs));
    byCount.set(connections, history);
    known.set(computeId, history);
  }
  return known;
}

/** What was counted and stored, for each source that the policies name. */
export function connectionsOfStore(samples: ReadonlyMap<string, readonly StoredSample[]>, set: PolicySet): Connections {
  const needs = needsOf(set.policies);
  const counted = [...samples].filter(([, all]) => all.length > 0);
  return new Map(
    counted.map(([computeId, all]) => {
      const of = (name: string) => {
        const { everyMs = DEFAULT_SOURCE_EVERY_MS } = set.sources.get(name) ?? {};
        return all.filter(({ source = name }) => source === name).map((sample) => withValidity(sample, everyMs));
      };
      // Also without headroom: a change that waits for a quiet moment asks for any count.
      return [
        computeId,
        new Map([['', all], ...needs.map(({ connections }) => [connections, of(connections)] as const)]),
      ];
    }),
  );
}

function sameForAll(needs: readonly ConnectionNeed[], samples: readonly ConnectionSample[]): ConnectionHistory {
  // Also without headroom: a change that waits for a quiet moment asks for any count.
  return new Map([['', samples], ...needs.map(({ connections }) => [connections, samples] as const)]);
}

/** So many samples that none is missing: a gap would count as not known. */
function steady(connections: number, nowMs: number, windowMs: number): ConnectionSample[] {
  const gaps = Math.ceil(windowMs / STALE_AFTER_MS);
  return Array.from({ length: gaps + 1 }, (_, index) => ({
    atMs: nowMs - Math.min(windowMs, (gaps - index) * STALE_AFTER_MS),
    connections,
  }));
}
