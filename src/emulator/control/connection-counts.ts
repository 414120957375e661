import type { Context, Handler } from 'hono';
import { countConnections } from '../world/connections.ts';
import type { WorldState } from '../world/entities.ts';

/** Of PromQL it understands the sum of this one metric, over one compute or by compute over several. */
const QUERY =
  /^\s*sum\s*(by\s*\(endpoint_id\)\s*)?\(\s*neon_connection_counts\{endpoint_id=~?"([a-z0-9|-]+)"\}\s*\)\s*$/;

const PROBLEM = 'the emulator answers only sum(neon_connection_counts{endpoint_id="ID"}), also by (endpoint_id)';

/** An instant query as a Prometheus answers it that scrapes the platform: connections of the computes that are awake. */
export function answerQuery(world: () => WorldState): Handler {
  return async (context) => {
    const [, by, ids = ''] = QUERY.exec(await queryOf(context)) ?? [];
    if (ids === '') return context.json({ status: 'error', errorType: 'bad_data', error: PROBLEM }, 400);
    const { computes, nowMs } = world();
    const awake = ids.split('|').flatMap((id) => {
      const compute = computes.get(id);
      return compute === undefined || compute.state === 'idle'
        ? []
        : [{ id, count: countConnections(compute.connected) }];
    });
    const sum = awake.reduce((total, { count }) => total + count, 0);
    const series = (metric: object, value: number) => ({ metric, value: [nowMs / 1000, String(value)] });
    const all = awake.length === 0 ? [] : [series({}, sum)];
    const each = awake.map(({ id, count }) => series({ endpoint_id: id }, count));
    return context.json({ status: 'success', data: { resultType: 'vector', result: by === undefined ? all : each } });
  };
}

async function queryOf({ req }: Context): Promise<string> {
  if (req.method === 'GET') return req.query('query') ?? '';
  return new URLSearchParams(await req.text()).get('query') ?? '';
}
