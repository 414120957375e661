import type { Clock } from '../../ports/clock.ts';
import { type ApiResult, type ControlApiError, isUnavailable } from '../../ports/control-api.ts';
import { type ApiCall, isWrite, routeOf, type SendOnce } from './api-call.ts';

/** An account counts as silent after this many failed reads, of at least this many projects, without an answer in between. */
const FAILURES = 10;
const PROJECTS = 2;

/** While an account is silent, one read is sent in this interval, in milliseconds: less than a tenth of the rate limit. */
const PROBE_EVERY_MS = 1_000;

/** The failed reads of an account since its last answer, and the reads that wait for their turn. */
interface Silence {
  failures: number;
  /** The projects of the failed reads; all lists of projects count as one. */
  projects: Set<string>;
  lastError?: ControlApiError;
  probedAtMs: number;
  /** The waiting reads in the order of arrival: each function lets one of them go. */
  waiting: Set<() => void>;
  isProbing: boolean;
}

/**
 * While an account is silent, one of its reads is sent each second; the first answer lets all go. Otherwise the reads of all projects would use
 * up the rate limit during an outage, and leave nothing of it for the changes that are due afterwards. Writes don't wait.
 */
export function slowWhileSilent(send: SendOnce, clock: Pick<Clock, 'monotonicMs' | 'wait'>): SendOnce {
  const silences = new Map<string, Silence>();

  function silenceOf(account: string): Silence {
    const silence = silences.get(account) ?? newSilence();
    silences.set(account, silence);
    return silence;
  }

  return async (call, signal) => {
    const silence = silenceOf(call.account);
    if (!isWrite(call) && isSilent(silence) && !(await waitForTurn(silence, clock, signal)))
      return notSent(call, silence);
    const result = await send(call, signal);
    note(silence, call, result);
    return result;
  };
}

function newSilence(): Silence {
  return {
    failures: 0,
    projects: new Set(),
    probedAtMs: Number.NEGATIVE_INFINITY,
    waiting: new Set(),
    isProbing: false,
  };
}

function isSilent({ failures, projects }: Silence): boolean {
  return failures >= FAILURES && projects.size >= PROJECTS;
}

/** Waits until it is the read's turn, or the account answers. False if the signal aborts first. */
function waitForTurn(
  silence: Silence,
  clock: Pick<Clock, 'monotonicMs' | 'wait'>,
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve) => {
    const go = () => {
      signal.removeEventListener('abort', leave);
      silence.waiting.delete(go);
      resolve(true);
    };
    const leave = () => {
      silence.waiting.delete(go);
      resolve(false);
    };
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    silence.waiting.add(go);
    if (!silence.isProbing) void probe(silence, clock);
  });
}

async function probe(silence: Silence, clock: Pick<Clock, 'monotonicMs' | 'wait'>): Promise<void> {
  silence.isProbing = true;
  try {
    while (silence.waiting.size > 0) {
      const waitMs = silence.probedAtMs + PROBE_EVERY_MS - clock.monotonicMs();
      if (waitMs > 0) await clock.wait(waitMs, undefined, { ref: false });
      const [next] = silence.waiting;
      silence.probedAtMs = clock.monotonicMs();
      next?.();
    }
  } catch {
    // The clock was stopped. Waiting reads must still end.
    letAllGo(silence);
  } finally {
    silence.isProbing = false;
  }
}

function letAllGo({ waiting }: Silence): void {
  for (const go of [...waiting]) go();
}

/**
 * Any answer but a 408 or 5xx ends the silence, even a refusal. Requests that were not sent and reads that their caller aborted are not
 * counted.
 */
function note(silence: Silence, call: ApiCall, result: ApiResult<unknown>): void {
  if (!result.ok && isUnavailable(result.error)) {
    if (isWrite(call) || call.signal?.aborted) return;
    silence.failures += 1;
    silence.projects.add(call.projectId ?? '');
    silence.lastError = result.error;
  } else if (result.ok || result.error.status !== undefined) {
    silence.failures = 0;
    silence.projects.clear();
    letAllGo(silence);
  }
}

function notSent(call: ApiCall, { lastError }: Silence): ApiResult<never> {
  const { code = 'unavailable', status, message } = lastError ?? {};
  const about = { route: routeOf(call), account: call.account, message: `not sent, as others failed: ${message}` };
  const error = { code, ...about, othersFail: true } as const;
  return { ok: false, error: status === undefined ? error : { ...error, status } };
}
