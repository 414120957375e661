import type { Handler } from 'hono';
import type { WorldState } from '../world/entities.ts';
import { BUCKETS, type Counted, type LatencySeries, type Served } from '../world/latency.ts';

const NAME = 'http_request_duration_seconds';

/** Answers a scrape: the response times of an application on each compute, in the text format of Prometheus. */
export function answerScrape(world: () => WorldState, series: LatencySeries): Handler {
  return (context) => {
    const { computes, projects, nowMs } = world();
    const served = [...computes.values()].map(({ id, state, connected, maxCu, startedAtMs, createdAtMs }): Served => {
      const demandCu = connected.reduce((sum, { cu = 0 }) => sum + cu, 0);
      const awakeMs = state === 'active' ? nowMs - (startedAtMs ?? createdAtMs) : undefined;
      return { computeId: id, demandCu, sizeCu: maxCu, awakeMs };
    });
    const lines = series.scrape(served, nowMs).flatMap((counted) => {
      const projectId = computes.get(counted.computeId)?.projectId ?? '';
      const service = projects.get(projectId)?.name ?? '';
      return textOf(counted, { service, project_id: projectId, compute_id: counted.computeId });
    });
    const head = [`# HELP ${NAME} Response times of requests.`, `# TYPE ${NAME} histogram`];
    return context.text(`${[...head, ...lines].join('\n')}\n`, 200, {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
    });
  };
}

function textOf({ counts, seconds }: Counted, labels: Record<string, string>): string[] {
  const labelText = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const buckets = counts.map((count, index) => {
    const limit = BUCKETS[index] ?? 0;
    return `${NAME}_bucket{${labelText},le="${Number.isFinite(limit) ? limit : '+Inf'}"} ${count}`;
  });
  return [...buckets, `${NAME}_sum{${labelText}} ${seconds}`, `${NAME}_count{${labelText}} ${counts.at(-1) ?? 0}`];
}
