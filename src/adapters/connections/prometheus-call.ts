import { Agent } from 'undici';
import type { Compute } from '../../domain/compute/compute.ts';
import { timerMs } from '../../ports/clock.ts';
import type { CountError } from '../../ports/connections.ts';
import { failed, type ReadSecret } from './outcomes.ts';

export interface PrometheusCallOptions {
  /** Base URL; `/api/v1/…` is put behind it. */
  url: string;
  readToken?: ReadSecret | undefined;
  timeoutMs?: number | undefined;
}

export type PrometheusReply = { ok: true; status: number; text: string } | { ok: false; error: CountError };

export interface PrometheusCall {
  /** Posts a form; never throws. */
  post(path: string, form: Readonly<Record<string, string>>, signal: AbortSignal): Promise<PrometheusReply>;
  close(): Promise<void>;
}

/** Concurrent requests. */
export const AT_ONCE = 4;

const TIMEOUT_MS = 10_000;
const MOST_BODY_BYTES = 4 * 1024 * 1024;

/** Ids enter the query; any other character could change what is asked. */
const ID = /^[a-z0-9-]+$/;

/** Sends queries to a Prometheus, or to anything with its API. Follows no redirect, uses no proxy. */
export function createPrometheusCall({
  url,
  readToken,
  timeoutMs = TIMEOUT_MS,
}: PrometheusCallOptions): PrometheusCall {
  const base = new URL(url);
  const dispatcher = new Agent({
    connections: AT_ONCE,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxResponseSize: MOST_BODY_BYTES,
  });
  return {
    async post(path, form, signal) {
      const token = readToken && (await readToken().catch((error: unknown) => Promise.resolve(error)));
      if (token !== undefined && typeof token !== 'string') {
        return failed('misconfigured', token instanceof Error ? token.message : 'no token');
      }
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timerMs(timeoutMs))]);
      try {
        const { statusCode, body } = await dispatcher.request({
          origin: base.origin,
          path: `${base.pathname.replace(/\/+$/, '')}/api/v1/${path}`,
          method: 'POST',
          headers: {
            accept: 'application/json',
            'content-type': 'application/x-www-form-urlencoded',
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: new URLSearchParams(form).toString(),
          signal: limit,
        });
        return { ok: true, status: statusCode, text: await body.text() };
      } catch (error) {
        return failureOf(error, limit);
      }
    },
    close: () => dispatcher.destroy(),
  };
}

export function hasSafeIds({ computeId, projectId, branchId }: Compute): boolean {
  return [computeId, projectId, branchId].every((id) => ID.test(id));
}

/** A query about one compute. */
export function filledIn(query: string, { computeId, projectId, branchId }: Compute): string {
  const ids: Record<string, string> = { compute: computeId, project: projectId, branch: branchId };
  return query.replaceAll(/\$(compute|project|branch)\b/g, (whole, name: string) => ids[name] ?? whole);
}

function failureOf(error: unknown, signal: AbortSignal): { ok: false; error: CountError } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error && error.message !== '' ? error.message : code;
  if (signal.aborted || code.includes('TIMEOUT')) return failed('timeout', 'no answer in time');
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) return failed('tls', message);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return failed('malformed', 'the answer is too long');
  return failed('unavailable', message);
}
