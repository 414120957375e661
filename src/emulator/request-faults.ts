import { createRandom, nextRandom, type RandomState } from './world/random.ts';

export type RequestFaultSpec = {
  /** `PATCH /projects/{project_id}/endpoints/{endpoint_id}`, or the path template alone; absent: every route. */
  route?: string | undefined;
  method?: string | undefined;
  /** The number of requests that the fault hits; absent: all. */
  count?: number | undefined;
  /** The share of matching requests that the fault hits, 0..1. */
  share: number;
  /** The seed for `share`. */
  seed: number;
} & (
  | { kind: 'latency'; ms: number }
  | { kind: 'status'; status: number; message?: string | undefined; retryAfterSeconds?: number | undefined }
  | { kind: 'hang_up' }
  | { kind: 'wrong_json' }
  | { kind: 'stale_reads'; ms: number }
  | { kind: 'duplicates' }
);

export type RequestFault = RequestFaultSpec & { id: string; hits: number };

/** The effects of faults on one request. */
export interface RequestEffects {
  /** The delay of the answer in real milliseconds. The request itself takes effect at once. */
  delayMs: number;
  /** How the request is spoilt. With `status` it has no effect. With `hang_up` and `wrong_json` it takes effect, but its answer is broken. */
  spoil?: Extract<RequestFault, { kind: 'status' | 'hang_up' | 'wrong_json' }>;
  /** Computes that were changed less than this many milliseconds ago are shown as before the change. */
  staleMs?: number;
  /** The first entry of a list is repeated at the end of the list. A repeated compute is shown as before its last change. */
  duplicates?: true;
}

export interface RequestFaults {
  add(spec: RequestFaultSpec): RequestFault;
  list(): RequestFault[];
  /** Without an id: all. */
  clear(id?: string): void;
  /** Decides by `share` which faults hit the request, and counts their hits. `route` is the template; undefined for unknown paths. */
  effectsOn(method: string, route: string | undefined): RequestEffects;
}

function matches(fault: RequestFault, method: string, route: string | undefined): boolean {
  if (fault.count !== undefined && fault.hits >= fault.count) return false;
  if (fault.method !== undefined && fault.method !== method) return false;
  return fault.route === undefined || fault.route === route || fault.route === `${method} ${route}`;
}

/** If several faults replace or break the answer, the first one applies. */
function isMasked({ kind }: RequestFault, { spoil }: RequestEffects): boolean {
  return spoil !== undefined && (kind === 'status' || kind === 'hang_up' || kind === 'wrong_json');
}

function addEffect(effects: RequestEffects, fault: RequestFault): void {
  if (fault.kind === 'latency') effects.delayMs += fault.ms;
  else if (fault.kind === 'stale_reads') effects.staleMs = Math.max(effects.staleMs ?? 0, fault.ms);
  else if (fault.kind === 'duplicates') effects.duplicates = true;
  else effects.spoil = fault;
}

export function createRequestFaults(nextId: () => string): RequestFaults {
  let faults: { fault: RequestFault; random: RandomState }[] = [];
  return {
    add(spec) {
      const fault = { ...spec, id: nextId(), hits: 0 };
      faults.push({ fault, random: createRandom(spec.seed) });
      return fault;
    },
    list: () => faults.map(({ fault }) => fault),
    clear(id) {
      faults = faults.filter(({ fault }) => id !== undefined && fault.id !== id);
    },
    effectsOn(method, route) {
      const effects: RequestEffects = { delayMs: 0 };
      for (const { fault, random } of faults) {
        if (isMasked(fault, effects) || !matches(fault, method, route)) continue;
        if (nextRandom(random) >= fault.share) continue;
        fault.hits += 1;
        addEffect(effects, fault);
      }
      return effects;
    },
  };
}
