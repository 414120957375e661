import { createRandom, nextRandom, type RandomState } from './world/random.ts';

export type RequestFaultSpec = {
  /** `PATCH /projects/{project_id}/endpoints/{endpoint_id}`, or the path template alone; absent: every route. */
  route?: string;
  method?: string;
  /** The number of requests that it hits; absent: all. */
  count?: number;
  /** The share of matching requests that it hits, 0..1. */
  share: number;
  /** The seed of the share's dice. */
  seed: number;
} & (
  | { kind: 'latency'; ms: number }
  | { kind: 'status'; status: number; message?: string; retryAfterSeconds?: number }
  | { kind: 'hang_up' }
  | { kind: 'wrong_json' }
  | { kind: 'stale_reads'; ms: number }
  | { kind: 'duplicates' }
);

export type RequestFault = RequestFaultSpec & { id: string; hits: number };

/** The effects of faults on one request. */
export interface RequestEffects {
  /** Delay of the answer in real milliseconds; the request has taken effect before. */
  delayMs: number;
  /** `status`: answered so and without effect. `hang_up`, `wrong_json`: took effect, but the answer is spoilt. */
  spoil?: Extract<RequestFault, { kind: 'status' | 'hang_up' | 'wrong_json' }>;
  /** Computes changed less than this long ago are shown as before the change, milliseconds. */
  staleMs?: number;
  /** The first entry of a list comes again at its end; a compute as it was before its last change. */
  duplicates?: true;
}

export interface RequestFaults {
  add(spec: RequestFaultSpec): RequestFault;
  list(): RequestFault[];
  /** Without an id: all. */
  clear(id?: string): void;
  /** Throws the dice and counts; `route` is the template, absent for unknown paths. */
  effectsOn(method: string, route: string | undefined): RequestEffects;
}

function matches(fault: RequestFault, method: string, route: string | undefined): boolean {
  if (fault.count !== undefined && fault.hits >= fault.count) return false;
  if (fault.method !== undefined && fault.method !== method) return false;
  return fault.route === undefined || fault.route === route || fault.route === `${method} ${route}`;
}

/** Of several faults that replace or spoil an answer, the first one counts. */
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
