import pLimit from 'p-limit';
import type { Compute } from '../../domain/compute/compute.ts';
import {
  EARLIER_DAYS,
  type GuardReadings,
  judgeBy,
  PAST_STEP_MS,
  type Series,
  type Verdict,
} from '../../domain/guards/verdict.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import type { CountError } from '../../ports/connections.ts';
import type { SeriesRange, SeriesSources } from '../../ports/guards.ts';

/** What a guard says now. */
export interface GuardAnswer {
  /** Why the source did not answer; then all verdicts are unknown. */
  error?: CountError;
  /** By compute id. */
  verdicts: ReadonlyMap<string, Verdict>;
}

export interface GuardQuestion {
  guard: GuardPolicy;
  source: ConnectionSource;
  computes: readonly Compute[];
  /** Milliseconds since the epoch. */
  nowMs: number;
  signal: AbortSignal;
}

/** Asks guards. It remembers what they said of the past, so that each question later is one query. */
export interface GuardAsker {
  ask(question: GuardQuestion): Promise<GuardAnswer>;
}

/** Earlier days are read a few at a time. */
const AT_ONCE = 4;

interface Past {
  atMs: number;
  series: readonly Series[];
}

interface KnownPast {
  day?: Past;
  /** For the hour that begins at `atMs`. */
  sameHours?: { atMs: number; days: readonly (readonly Series[])[] };
}

type PastRead = { ok: true; value: Pick<GuardReadings, 'day' | 'sameHours'> } | { ok: false; error: CountError };

export function createGuardAsker(sources: SeriesSources): GuardAsker {
  const pasts = new Map<string, KnownPast>();

  async function readPast({ guard, source, nowMs, signal }: GuardQuestion): Promise<PastRead> {
    if (!guard.badWhen.relative) return { ok: true, value: {} };
    const key = JSON.stringify([source, guard.query]);
    const past = pasts.get(key) ?? {};
    pasts.set(key, past);
    const read = (range: SeriesRange) => sources.of(source).range(guard.query, range, signal);
    if (!isCurrent(past.day, nowMs, PAST_STEP_MS)) {
      const day = await read({ fromMs: nowMs - DAY_MS, toMs: nowMs, stepMs: PAST_STEP_MS });
      if (!day.ok) return day;
      past.day = { atMs: nowMs, series: day.value };
    }
    const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
    if (past.sameHours?.atMs !== hourMs) {
      const days = Array.from({ length: EARLIER_DAYS }, (_, index) => hourMs - (index + 1) * DAY_MS);
      const answers = await pLimit(AT_ONCE).map(days, (fromMs) =>
        read({ fromMs, toMs: fromMs + HOUR_MS, stepMs: PAST_STEP_MS }),
      );
      const failed = answers.find((answer) => !answer.ok);
      if (failed && !failed.ok) return failed;
      past.sameHours = { atMs: hourMs, days: answers.map((answer) => (answer.ok ? answer.value : [])) };
    }
    return { ok: true, value: { day: past.day?.series ?? [], sameHours: past.sameHours.days } };
  }

  return {
    async ask(question) {
      const { guard, source, computes, nowMs, signal } = question;
      const latest = await sources.of(source).latest(guard.query, signal);
      if (!latest.ok) return unanswered(question, latest.error);
      const past = await readPast(question);
      if (!past.ok) return unanswered(question, past.error);
      const judge = judgeBy(guard, { latest: latest.value, ...past.value });
      return { verdicts: new Map(computes.map((compute) => [compute.computeId, judge(compute, nowMs)])) };
    },
  };
}

function unanswered({ source, computes }: GuardQuestion, error: CountError): GuardAnswer {
  const verdict: Verdict = { state: 'unknown', message: `${source.name} did not answer: ${error.message}` };
  return { error, verdicts: new Map(computes.map(({ computeId }) => [computeId, verdict])) };
}

/** A clock may be set back. */
function isCurrent(past: Past | undefined, nowMs: number, forMs: number): boolean {
  return past !== undefined && nowMs >= past.atMs && nowMs - past.atMs < forMs;
}
