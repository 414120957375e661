import { Agent } from 'undici';
import type { Compute } from '../../domain/compute.ts';
import type { ConnectionCounter, CountOutcome, CountRequest } from '../../ports/connections.ts';
import { countEach, failed, type ReadSecret } from './outcomes.ts';
import { type Series, seriesIn } from './prometheus-answer.ts';
import { askForMany, type ManyQuery } from './prometheus-batch.ts';

export interface PrometheusCounterOptions {
  /** Base URL; `/api/v1/query` is put behind it. */
  url: string;
  query: string;
  readToken?: ReadSecret;
  timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
const AT_ONCE = 4;
const MOST_COMPUTES_A_QUERY = 200;
const MOST_BODY_BYTES = 4 * 1024 * 1024;

/** Ids enter the query; any other character could change what is asked. */
const ID = /^[a-z0-9-]+$/;

/**
 * Asks a Prometheus, or what speaks like one, by instant queries: one for many computes where the query allows it. No redirect is
 * followed, no proxy used.
 */
export function createPrometheusCounter(options: PrometheusCounterOptions): ConnectionCounter {
  const { url, query, readToken, timeoutMs = TIMEOUT_MS } = options;
  const base = new URL(url);
  const dispatcher = new Agent({
    connections: AT_ONCE,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxResponseSize: MOST_BODY_BYTES,
  });

  async function ask(text: string, signal: AbortSignal): Promise<Asked> {
    const token = readToken && (await readToken().catch((error: unknown) => Promise.resolve(error)));
    if (token !== undefined && typeof token !== 'string') {
      return failed('misconfigured', token instanceof Error ? token.message : 'no token');
    }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const { statusCode, body } = await dispatcher.request({
        origin: base.origin,
        path: `${base.pathname.replace(/\/+$/, '')}/api/v1/query`,
        method: 'POST',
        headers: {
          accept: 'application/json',
          'content-type': 'application/x-www-form-urlencoded',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: new URLSearchParams({ query: text }).toString(),
        signal: limit,
      });
      return seriesIn(statusCode, await body.text());
    } catch (error) {
      return failureOf(error, limit);
    }
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
    close: () => dispatcher.destroy(),
  };
}

type Asked = ReturnType<typeof seriesIn>;

function hasSafeIds({ computeId, projectId, branchId }: Compute): boolean {
  return [computeId, projectId, branchId].every((id) => ID.test(id));
}

function filledIn(query: string, { computeId, projectId, branchId }: Compute): string {
  const ids: Record<string, string> = { compute: computeId, project: projectId, branch: branchId };
  return query.replaceAll(/\$(compute|project|branch)\b/g, (whole, name: string) => ids[name] ?? whole);
}

function countOf(series: readonly Series[]): CountOutcome {
  const [only] = series;
  if (only === undefined) return failed('no_data', 'the query gives no value for it');
  if (series.length > 1)
    return failed('malformed', `the query gives ${series.length} series for it, not one: sum them`);
  const connections = Number(only.value);
  if (only.value === 'NaN') return failed('no_data', 'the query gives NaN for it');
  if (!Number.isFinite(connections) || connections < 0) {
    return failed('malformed', `the query gives ${only.value.slice(0, 40)} for it, which is no number of connections`);
  }
  // Averages and sums of rates are not whole; a need is never rounded down.
  return { ok: true, value: { connections: Math.ceil(connections) } };
}

function failureOf(error: unknown, signal: AbortSignal): Extract<Asked, { ok: false }> {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error && error.message !== '' ? error.message : code;
  if (signal.aborted || code.includes('TIMEOUT')) return failed('timeout', 'no answer in time');
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) return failed('tls', message);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return failed('malformed', 'the answer is too long');
  return failed('unavailable', message);
}
