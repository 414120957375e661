/** Generated days of guarded computes: what their samples were, when they were awake, and what was changed. A seed decides all. */
import type { OperationRow } from '../../src/domain/awake/operation-log.ts';
import type { Compute, ComputeSettings } from '../../src/domain/compute/compute.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { aCompute, at } from './builders.ts';

export const ROUND_MS = 30_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
export const FROM = at('2026-03-02T15:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
export const TO = FROM + 7 * HOUR_MS;

export type PastChange = { atMs: number; compute: Compute } & (
  | { kind: 'applied' | 'refused' | 'failed' | 'manual'; fields: Partial<ComputeSettings>; policy: string }
  | { kind: 'held' | 'released' }
);

export interface GuardedPast {
  computes: Compute[];
  /** Oldest first. */
  changes: PastChange[];
  operations: OperationRow[];
  stateAt(computeId: string, atMs: number): Pick<Compute, 'state' | 'startedAtMs'>;
  /** Undefined where it has no sample; two where its series is doubled. */
  valuesAt(computeId: string, atMs: number): number[];
}

interface Span {
  fromMs: number;
  toMs: number;
}

interface OnePast {
  awake: Span[];
  bad: Span[];
  gaps: Span[];
  doubled: Span[];
  hasBatch: boolean;
  /** Its series goes on while it sleeps, as that of a proxy does. */
  speaksAsleep: boolean;
}

const within = (spans: readonly Span[], ms: number) => spans.find(({ fromMs, toMs }) => ms >= fromMs && ms < toMs);

export function guardedPast(seed: number): GuardedPast {
  const random = seededRandom(seed);
  const upTo = (most: number) => Math.floor(random() * (most + 1));
  const second = (ms: number) => Math.floor(ms / 1000) * 1000;
  const spans = (most: number, longestMinutes: number): Span[] =>
    Array.from({ length: upTo(most) }, () => {
      const fromMs = FROM + upTo(TO - FROM);
      return { fromMs, toMs: fromMs + upTo(longestMinutes * MINUTE_MS) };
    });
  const outage = random() < 0.4 ? [{ fromMs: SIX + upTo(10 * MINUTE_MS), toMs: SIX + upTo(40 * MINUTE_MS) }] : [];
  const computes = Array.from({ length: 2 + upTo(4) }, (_, index) => aCompute({ computeId: `ep-${index}`, maxCu: 4 }));
  const operations: OperationRow[] = [];

  function awakeSpans({ projectId, computeId }: Compute): Span[] {
    const awake: Span[] = [];
    const note = (action: string, createdAtMs: number) =>
      operations.push({ projectId, computeId, action, status: 'finished', createdAtMs, totalDurationMs: 500 });
    let fromMs = second(random() < 0.7 ? FROM - HOUR_MS : FROM + upTo(2 * HOUR_MS));
    while (fromMs < TO) {
      const toMs = second(fromMs + 5 * MINUTE_MS + upTo(random() < 0.5 ? HOUR_MS : 8 * HOUR_MS));
      note('start_compute', fromMs);
      if (toMs < TO) note('suspend_compute', toMs);
      awake.push({ fromMs, toMs });
      // A restart, or a sleep.
      fromMs = second(toMs + (random() < 0.4 ? 1_000 : 1_000 + upTo(2 * HOUR_MS)));
    }
    return awake;
  }

  const pasts = new Map<string, OnePast>();
  const changes: PastChange[] = [];
  for (const compute of computes) {
    const isHurt = random() < 0.5;
    const harm = isHurt ? [{ fromMs: SIX + upTo(30 * MINUTE_MS), toMs: SIX + upTo(2 * HOUR_MS) }] : [];
    pasts.set(compute.computeId, {
      awake: awakeSpans(compute),
      bad: [...outage, ...harm, ...spans(2, 30)],
      gaps: spans(2, random() < 0.2 ? 120 : 4),
      doubled: spans(1, 3),
      hasBatch: random() < 0.2,
      speaksAsleep: random() < 0.2,
    });
    changes.push(...changesOf(compute, { random, upTo }));
  }
  operations.sort((a, b) => a.createdAtMs - b.createdAtMs);
  changes.sort((a, b) => a.atMs - b.atMs);

  function valuesAt(computeId: string, atMs: number): number[] {
    const past = pasts.get(computeId);
    if (!past) return [];
    const isAwake = atMs < FROM || within(past.awake, atMs) !== undefined;
    if ((!isAwake && !past.speaksAsleep) || within(past.gaps, atMs)) return [];
    const isBatch = past.hasBatch && atMs % (24 * HOUR_MS) >= 18 * HOUR_MS && atMs % (24 * HOUR_MS) < 19 * HOUR_MS;
    const noise = seededRandom(seed + atMs / 1000 + computeId.length)();
    const value = (within(past.bad, atMs) || isBatch ? 1 : 0.1) * (0.8 + 0.4 * noise) * (noise > 0.99 ? 12 : 1);
    return within(past.doubled, atMs) ? [value, value] : [value];
  }

  return {
    ...{ computes, changes, operations, valuesAt },
    stateAt(computeId, atMs) {
      const span = within(pasts.get(computeId)?.awake ?? [], atMs);
      return span ? { state: 'active', startedAtMs: span.fromMs } : { state: 'idle' };
    },
  };
}

/** The kinds of changes of the size, and how likely each is. */
const SIZE_CHANGES = [
  ['manual', 0.08],
  ['refused', 0.08],
  ['failed', 0.08],
  ['applied', 1],
] as const;

interface Draw {
  random(): number;
  upTo(most: number): number;
}

function resized(compute: Compute, { random }: Draw, atMs: number, before: readonly PastChange[]): PastChange[] {
  const sizes = before.filter((one) => 'fields' in one && one.fields.maxCu !== undefined && one.kind !== 'refused');
  const maxCu = sizes.length % 2 === 0 ? 1 : 4;
  const kind = SIZE_CHANGES.find(([, share]) => random() < share)?.[0] ?? 'applied';
  const change = { atMs, compute, policy: 'office-hours', fields: { minCu: 0.25, maxCu } };
  if (kind !== 'failed') return [{ ...change, kind }];
  return [
    { ...change, kind: 'applied' },
    { ...change, kind, atMs: atMs + 5_000 },
  ];
}

/** Up to four changes, some of them together at six. Nothing is changed while a person holds the compute. */
function changesOf(compute: Compute, draw: Draw): PastChange[] {
  const { random, upTo } = draw;
  const changes: PastChange[] = [];
  const together = () => (random() < 0.5 ? SIX + 1000 * upTo(20) : 0);
  let isHeld = false;
  let atMs = FROM + HOUR_MS;
  for (let index = upTo(4); index > 0; index -= 1) {
    atMs = Math.max(atMs + 1000 * (60 + upTo(4_800)), together());
    if (random() < 0.15) {
      isHeld = !isHeld;
      changes.push({ atMs, compute, kind: isHeld ? 'held' : 'released' });
    } else if (!isHeld && random() < 0.2) {
      const fields = { suspendTimeoutSeconds: random() < 0.5 ? 60 : 300 };
      changes.push({ atMs, compute, kind: 'applied', policy: 'office-hours', fields });
    } else if (!isHeld) changes.push(...resized(compute, draw, atMs, changes));
  }
  return changes;
}
