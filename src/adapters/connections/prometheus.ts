import type { ConnectionCounter, CountOutcome, CountRequest } from '../../ports/connections.ts';
import { countEach, failed } from './outcomes.ts';
import {
  AT_ONCE,
  connectionsIn,
  createPrometheusCall,
  filledIn,
  hasSafeIds,
  type PrometheusCallOptions,
  type RawSeries,
  seriesIn,
  tooManySeries,
} from './prometheus-api.ts';

const MAX_COMPUTES_PER_QUERY = 200;

/** Counts by instant queries. If the query is a plain sum, one request asks for many computes. */
export function createPrometheusCounter({
  query,
  ...options
}: PrometheusCallOptions & { query: string }): ConnectionCounter {
  const call = createPrometheusCall(options);
  const ask = async (text: string, signal: AbortSignal) => seriesIn(await call.post('query', { query: text }, signal));

  async function askForOne({ compute }: CountRequest, signal: AbortSignal): Promise<CountOutcome> {
    const answer = await ask(filledIn(query, compute), signal);
    return answer.ok ? countOf(answer.value) : answer;
  }

  async function askInOne(many: ManyQuery, requests: readonly CountRequest[], signal: AbortSignal) {
    const outcomes = new Map<string, CountOutcome>();
    for (let at = 0; at < requests.length; at += MAX_COMPUTES_PER_QUERY) {
      const ids = requests.slice(at, at + MAX_COMPUTES_PER_QUERY).map(({ compute }) => compute.computeId);
      const answer = await ask(many.textFor(ids), signal);
      for (const id of ids) {
        const isOfCompute = ({ labels }: RawSeries) => labels[many.label] === id;
        outcomes.set(id, answer.ok ? countOf(answer.value.filter(isOfCompute)) : answer);
      }
    }
    return outcomes;
  }

  const many = manyQueryOf(query);
  return {
    async count(requests, signal) {
      const safe = requests.filter(({ compute }) => hasSafeIds(compute));
      const outcomes = many
        ? await askInOne(many, safe, signal)
        : await countEach(safe, AT_ONCE, (request) => askForOne(request, signal));
      for (const { compute } of requests.filter((request) => !safe.includes(request))) {
        outcomes.set(compute.computeId, failed('misconfigured', 'its id cannot be used in a query'));
      }
      return outcomes;
    },
    close: () => call.close(),
  };
}

function countOf(series: readonly RawSeries[]): CountOutcome {
  const [, value] = series[0]?.points[0] ?? [];
  if (value === undefined) return failed('no_data', 'the query gives no value for it');
  if (series.length > 1) return tooManySeries(series.length);
  if (value === 'NaN') return failed('no_data', 'the query gives NaN for it');
  const connections = connectionsIn(value);
  return connections.ok ? { ok: true, value: { connections: connections.value } } : connections;
}

/** A query for many computes at once. */
interface ManyQuery {
  /** The name of the label whose value is the compute's id. */
  label: string;
  textFor(computeIds: readonly string[]): string;
}

/** One sum over one metric, without quotes or escapes in the strings of its matchers. */
const SUM = /^\s*sum\s*\(\s*([a-zA-Z_:][\w:]*)\s*\{((?:[^"{}]|"[^"\\]*")*)\}\s*\)\s*$/;
const BY_COMPUTE = /(^|[,\s])([a-zA-Z_]\w*)\s*=\s*"\$compute"/;

/** Undefined unless the query is a plain sum whose only variable is `$compute` in one matcher. Only then a sum by that label gives the same. */
function manyQueryOf(query: string): ManyQuery | undefined {
  const [, metric, matchers = ''] = SUM.exec(query) ?? [];
  const [, , label] = BY_COMPUTE.exec(matchers) ?? [];
  if (metric === undefined || label === undefined || query.split('$').length !== 2) return undefined;
  return {
    label,
    textFor: (computeIds) => {
      const anyOf = `${label}=~"${computeIds.join('|')}"`;
      return `sum by (${label}) (${metric}{${matchers.replace(BY_COMPUTE, (_whole, before: string) => before + anyOf)}})`;
    },
  };
}
