import pLimit from 'p-limit';
import type { Compute } from '../../domain/compute/compute.ts';
import { guardKey } from '../../domain/guards/state.ts';
import {
  EARLIER_DAYS,
  judgeBy,
  type LimitOf,
  limitsFrom,
  PAST_STEP_MS,
  type PastReadings,
  type Series,
  type Verdict,
} from '../../domain/guards/verdict.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import type { CountError, SourceAnswer } from '../../ports/connections.ts';
import type { SeriesRange, SeriesSources } from '../../ports/guards.ts';

export interface GuardAnswer {
  /** Set if the source did not answer; all verdicts are unknown then. */
  error?: CountError;
  /** By compute id. */
  verdicts: ReadonlyMap<string, Verdict>;
  /** Verdicts on lowered computes, compared with their samples from before the lowering, by compute id. */
  sinceLowered: ReadonlyMap<string, Verdict>;
}

export interface GuardQuestion {
  guard: GuardPolicy;
  source: ConnectionSource;
  computes: readonly Compute[];
  /** When computes were lowered, by compute id, milliseconds since the epoch. */
  loweredAtMs?: ReadonlyMap<string, number>;
  nowMs: number;
  signal: AbortSignal;
}

/** Asks guards. Earlier samples are remembered, so that each later question is one query. */
export interface GuardAsker {
  ask(question: GuardQuestion): Promise<GuardAnswer>;
}

/** Concurrent queries about earlier days. */
const CONCURRENT_QUERIES = 4;

/** How far back samples are read, in milliseconds: up to a day since a lowering, and the day before it. */
const PAST_MS = 2 * DAY_MS;
/** The past is read in parts of this length, in milliseconds, since sources limit the length of an answer. */
const PART_MS = 6 * HOUR_MS;

/** The earlier samples of one query. */
interface PastSamples {
  /** A query that failed, perhaps because it was too expensive for the source, is not repeated within {@link PAST_STEP_MS}. */
  failed?: { atMs: number; error: CountError };
  days?: { atMs: number; series: readonly Series[] };
  /** The finished parts of these days, by their start in milliseconds since the epoch: they are not read again. */
  parts?: ReadonlyMap<number, readonly Series[]>;
  /** Samples of each of the {@link EARLIER_DAYS} days before, from the same hour of the day as the hour that begins at `atMs`. */
  sameHours?: { atMs: number; days: readonly (readonly Series[])[] };
  /** The limits computed from these samples, by the guard's terms. Emptied when samples are read again. */
  limits: Map<string, LimitOf>;
}

export function createGuardAsker(sources: SeriesSources): GuardAsker {
  const pasts = new Map<string, PastSamples>();

  async function readLimits({ guard, source, nowMs, signal }: GuardQuestion): Promise<SourceAnswer<LimitOf>> {
    if (!guard.badWhen.relative) return { ok: true, value: () => undefined };
    const key = JSON.stringify([source, guard.query]);
    const past: PastSamples = pasts.get(key) ?? { limits: new Map() };
    pasts.set(key, past);
    const stepMs = Math.floor(nowMs / PAST_STEP_MS) * PAST_STEP_MS;
    if (past.failed?.atMs === stepMs) return { ok: false, error: past.failed.error };
    const read = async (
      ranges: readonly Pick<SeriesRange, 'fromMs' | 'toMs'>[],
    ): Promise<SourceAnswer<(readonly Series[])[]>> => {
      const answers = await pLimit(CONCURRENT_QUERIES).map(ranges, (range) =>
        sources.of(source).range(guard.query, { ...range, stepMs: PAST_STEP_MS }, signal),
      );
      const failed = answers.find((answer) => !answer.ok);
      if (failed && !signal.aborted) past.failed = { atMs: stepMs, error: failed.error };
      return failed ?? { ok: true, value: answers.flatMap((answer) => (answer.ok ? [answer.value] : [])) };
    };
    if (past.days?.atMs !== stepMs) {
      const { starts, missing } = partsOf(past, stepMs);
      const answers = await read(missing);
      if (!answers.ok) return answers;
      const newParts = new Map(missing.map(({ fromMs }, index) => [fromMs, answers.value[index] ?? []]));
      const parts = starts.map((fromMs) => [fromMs, past.parts?.get(fromMs) ?? newParts.get(fromMs) ?? []] as const);
      past.parts = new Map(parts.filter(([fromMs]) => fromMs + PART_MS <= stepMs));
      past.days = { atMs: stepMs, series: parts.flatMap(([, series]) => series) };
      past.limits.clear();
    }
    const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
    if (past.sameHours?.atMs !== hourMs) {
      const begins = Array.from({ length: EARLIER_DAYS }, (_, index) => hourMs - (index + 1) * DAY_MS);
      const days = await read(begins.map((fromMs) => ({ fromMs, toMs: fromMs + HOUR_MS })));
      if (!days.ok) return days;
      past.sameHours = { atMs: hourMs, days: days.value };
      past.limits.clear();
    }
    const readings = { days: past.days.series, sameHours: past.sameHours.days };
    return { ok: true, value: limitsIn(past.limits, guard, readings) };
  }

  return {
    async ask(question) {
      const { guard, source, computes, loweredAtMs, nowMs, signal } = question;
      const latest = await sources.of(source).latest(guard.query, signal);
      if (!latest.ok) return unanswered(question, latest.error);
      const limits = await readLimits(question);
      if (!limits.ok) return unanswered(question, limits.error);
      const judge = judgeBy(guard, latest.value, limits.value);
      const lowered = computes.flatMap((compute) => {
        const beforeMs = loweredAtMs?.get(compute.computeId);
        return beforeMs === undefined ? [] : [[compute.computeId, judge(compute, beforeMs)] as const];
      });
      return {
        verdicts: new Map(computes.map((compute) => [compute.computeId, judge(compute, nowMs)])),
        sinceLowered: new Map(lowered),
      };
    },
  };
}

function limitsIn(limits: PastSamples['limits'], guard: GuardPolicy, past: PastReadings): LimitOf {
  const terms = guardKey(guard);
  const limitOf = limits.get(terms) ?? limitsFrom(guard, past);
  limits.set(terms, limitOf);
  return limitOf;
}

/** Returns the starts of the parts of {@link PAST_MS}, and the ranges of those that must be read. */
function partsOf({ parts }: PastSamples, stepMs: number) {
  const firstMs = Math.floor((stepMs - PAST_MS) / PART_MS) * PART_MS;
  const starts = Array.from({ length: PAST_MS / PART_MS + 1 }, (_, index) => firstMs + index * PART_MS);
  const missing = starts
    .filter((fromMs) => !parts?.has(fromMs))
    .map((fromMs) => ({ fromMs, toMs: Math.min(stepMs, fromMs + PART_MS - PAST_STEP_MS) }));
  return { starts, missing };
}

function unanswered({ source, computes }: GuardQuestion, error: CountError): GuardAnswer {
  const verdict: Verdict = { state: 'unknown', message: `${source.name} did not answer: ${error.message}` };
  const verdicts = new Map(computes.map(({ computeId }) => [computeId, verdict]));
  return { error, verdicts, sinceLowered: verdicts };
}
