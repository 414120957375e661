import type { Platform } from './platform.ts';
import type { RequestEffects } from './request-faults.ts';
import type { Answer } from './wire/answer.ts';
import { renderCompute } from './wire/render.ts';
import { findCompute, findProject } from './world/outcome.ts';

/** Reads that show something else than there is, as from a replica that lags behind. */
export interface WrongReads {
  /** Remembers what a compute is like before a request that may change it. */
  note(method: string, params: Readonly<Record<string, string>>): void;
  /** The answer to a GET as the faults want it; any other answer as it is. */
  applyTo(method: string, answer: Answer, effects: RequestEffects): Answer;
}

type Entry = Record<string, unknown>;

const CHANGEABLE = [
  'autoscaling_limit_min_cu',
  'autoscaling_limit_max_cu',
  'suspend_timeout_seconds',
  'updated_at',
] as const;

const LISTS = ['endpoints', 'projects', 'branches', 'operations'] as const;

export function createWrongReads(platform: Platform): WrongReads {
  /** By id of the compute, what it was like before its last PATCH, and when that came. */
  const before = new Map<string, { fields: Entry; atMs: number }>();

  const old = (entry: Entry, staleMs: number): Entry => {
    const known = before.get(String(entry.id));
    return known && platform.clock.now() - known.atMs < staleMs ? { ...entry, ...known.fields } : entry;
  };

  return {
    note(method, { project_id: projectId, endpoint_id: computeId }) {
      if (method !== 'PATCH' || projectId === undefined || computeId === undefined) return;
      const world = platform.world();
      const [project, compute] = [findProject(world, projectId), findCompute(world, projectId, computeId)];
      if (!project.ok || !compute.ok) return;
      const shown: Entry = { ...renderCompute(compute.value, project.value, world.nowMs) };
      const fields = Object.fromEntries(CHANGEABLE.map((name) => [name, shown[name]]));
      before.set(computeId, { fields, atMs: platform.clock.now() });
    },
    applyTo(method, answer, { staleMs = 0, duplicates }) {
      if (method !== 'GET' || answer.status !== 200 || (staleMs === 0 && !duplicates)) return answer;
      const body = { ...(answer.body as Entry) };
      if (body.endpoint) body.endpoint = old(body.endpoint as Entry, staleMs);
      for (const name of LISTS) {
        if (!Array.isArray(body[name])) continue;
        const entries: Entry[] = body[name].map((entry) => old(entry, staleMs));
        const [first] = entries;
        body[name] = duplicates && first ? [...entries, old(first, Number.POSITIVE_INFINITY)] : entries;
      }
      return { ...answer, body };
    },
  };
}
