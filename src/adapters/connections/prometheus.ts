import type { ConnectionCounter, CountOutcome, CountRequest } from '../../ports/connections.ts';
import { countEach, failed } from './outcomes.ts';
import { connectionsIn, type Series, seriesIn, tooManySeries } from './prometheus-answer.ts';
import { AT_ONCE, createPrometheusCall, filledIn, hasSafeIds, type PrometheusCallOptions } from './prometheus-call.ts';

interface PrometheusCounterOptions extends PrometheusCallOptions {
  query: string;
}

const MOST_COMPUTES_A_QUERY = 200;

/** Counts by instant queries: one for many computes where the query allows it. */
export function createPrometheusCounter({ query, ...options }: PrometheusCounterOptions): ConnectionCounter {
  const call = createPrometheusCall(options);

  async function ask(text: string, signal: AbortSignal): Promise<ReturnType<typeof seriesIn>> {
    const reply = await call.post('query', { query: text }, signal);
    return reply.ok ? seriesIn(reply.status, reply.text) : reply;
  }

  async function askForOne({ compute }: CountRequest, signal: AbortSignal): Promise<CountOutcome> {
    const answer = await ask(filledIn(query, compute), signal);
    return answer.ok ? countOf(answer.value) : answer;
  }

  async function askInOne(many: ManyQuery, requests: readonly CountRequest[], signal: AbortSignal) {
    const outcomes = new Map<string, CountOutcome>();
    for (let at = 0; at < requests.length; at += MOST_COMPUTES_A_QUERY) {
      const ids = requests.slice(at, at + MOST_COMPUTES_A_QUERY).map(({ compute }) => compute.computeId);
      const answer = await ask(many.textFor(ids), signal);
      for (const id of ids) {
        const own = answer.ok ? answer.value.filter(({ labels }) => labels[many.label] === id) : [];
        outcomes.set(id, answer.ok ? countOf(own) : answer);
      }
    }
    return outcomes;
  }

  const many = askForMany(query);
  return {
    async count(requests, signal) {
      const safe = requests.filter(({ compute }) => hasSafeIds(compute));
      const outcomes = many
        ? await askInOne(many, safe, signal)
        : await countEach(safe, AT_ONCE, (request) => askForOne(request, signal));
      for (const { compute } of requests.filter((request) => !safe.includes(request))) {
        outcomes.set(compute.computeId, failed('misconfigured', 'its id can not stand in a query'));
      }
      return outcomes;
    },
    close: () => call.close(),
  };
}

function countOf(series: readonly Series[]): CountOutcome {
  const [only] = series;
  if (only === undefined) return failed('no_data', 'the query gives no value for it');
  if (series.length > 1) return tooManySeries(series.length);
  if (only.value === 'NaN') return failed('no_data', 'the query gives NaN for it');
  const connections = connectionsIn(only.value);
  return connections.ok ? { ok: true, value: { connections: connections.value } } : connections;
}

/** A query for many computes at once; the label tells the series apart. */
interface ManyQuery {
  label: string;
  textFor(computeIds: readonly string[]): string;
}

/** One sum over one metric; strings in its matchers without quotes or escapes inside. */
const SUM = /^\s*sum\s*\(\s*([a-zA-Z_:][\w:]*)\s*\{((?:[^"{}]|"[^"\\]*")*)\}\s*\)\s*$/;
const BY_COMPUTE = /(^|[,\s])([a-zA-Z_]\w*)\s*=\s*"\$compute"/;

/**
 * Undefined unless the query is a plain sum in which the compute occurs in one matcher and nothing else is filled in: only then is the
 * same sum by that label equivalent.
 */
function askForMany(query: string): ManyQuery | undefined {
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
