import { counted } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import type { GuardReplay } from '../../compose/guard-replay.ts';
import { formatChange, formatDuration } from '../../domain/compute/compute-units.ts';
import { fieldsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { numberJson, type Verdict } from '../../domain/guards/verdict.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import { roundTo } from '../../domain/sum.ts';
import { isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import { jsonText, shortened } from '../output.ts';
import { plainTable } from '../terminal.ts';
import { type ReplayRow, replayRows, sumsOf } from './replay-report.ts';

export interface GuardReplayed {
  guard: GuardPolicy;
  replay: GuardReplay;
  fromMs: number;
  toMs: number;
}

const NAME_WIDTH = 40;

export function replayJson({ guard, replay, fromMs, toMs }: GuardReplayed): string {
  const rows = replayRows(guard, replay);
  const { name, query, remedy } = guard;
  return jsonText({
    guard: name,
    query,
    remedy,
    from: isoInstant(fromMs),
    to: isoInstant(toMs),
    sums: sumsOf(rows),
    lowerings: rows.map(rowJson),
  });
}

function rowJson(row: ReplayRow) {
  const { compute, lowering, before, events, outcome, harm, remedy, connections, notTriedSinceMs } = row;
  return {
    project_id: compute.projectId,
    project_name: compute.projectName,
    compute_id: compute.computeId,
    lowered_at: isoInstant(lowering.atMs),
    policies: row.policies,
    from: fieldsJson(row.from),
    to: fieldsJson(row.to),
    before: typeof before === 'string' ? { verdict: before } : verdictJson(before),
    held_back: row.isHeldBack,
    outcome,
    bad_since: harm ? sinceIso(harm.badSinceMs, lowering.atMs) : null,
    found_at: harm ? isoInstant(harm.foundAtMs) : null,
    remedy: notTriedSinceMs === undefined ? (remedy ?? null) : 'not_tried_again',
    connections_dropped: connections ?? null,
    minutes_with_samples: minutes(row.sampledMs),
    minutes_without: minutes(row.blindMs),
    events: events.map(({ atMs, outcome: what, badSinceMs }) => ({
      at: isoInstant(atMs),
      outcome: what,
      bad_since: sinceIso(badSinceMs, lowering.atMs),
    })),
  };
}

/** Null if the guard was already bad when its compute was lowered, which the first rounds of the replay show. */
function sinceIso(badSinceMs: number | undefined, loweredAtMs: number): string | null {
  return badSinceMs === undefined || badSinceMs <= loweredAtMs ? null : isoInstant(badSinceMs);
}

function verdictJson({ state, value, limit, message }: Verdict) {
  return { verdict: state, value: numberJson(value), limit: numberJson(limit), message };
}

function minutes(ms: number): number {
  return roundTo(ms / MINUTE_MS, 1);
}

export function replayText({ guard, replay, fromMs, toMs }: GuardReplayed): string {
  const rows = replayRows(guard, replay);
  const title = `${guard.name}, ${isoInstant(fromMs)} to ${isoInstant(toMs)}, then: ${guard.remedy}`;
  if (rows.length === 0) return `${title}\nebb has lowered none of its computes.`;
  const table = plainTable(
    ['lowered at', 'compute', 'change', 'before', 'after'],
    rows.map((row) => [
      isoInstant(row.lowering.atMs),
      shortened(printable(`${row.compute.projectName} / ${row.compute.computeId}`), NAME_WIDTH),
      formatChange({ ...row.compute, ...row.from }, row.to),
      beforeText(row),
      afterText(row, guard),
    ]),
  );
  const sums = sumsOf(rows);
  const { connections_dropped: dropped } = sums;
  const counts = [
    [sums.healthy, 'healthy'],
    [sums.harm, sums.harm === 1 ? 'harm' : 'harms'],
    [sums.common_cause, 'of a common cause'],
    [sums.no_samples, 'without samples'],
    [sums.unfinished, 'changed, fell asleep or were still watched before the guard could tell'],
    [sums.not_tried_again, 'not tried again'],
    [sums.not_known, 'not known'],
  ] as const;
  const undone = `${sums.undone} undone, connections dropped: ${dropped ?? 'not known'}`;
  return [
    title,
    '',
    table,
    '',
    `${counted(rows.length, 'lowering')}: ${counts.flatMap(([n, what]) => (n > 0 ? [`${n} ${what}`] : [])).join(', ')}`,
    `${sums.held_back} held back before${guard.remedy === 'notify' ? '' : `; ${undone}`}`,
  ].join('\n');
}

function beforeText({ before, isHeldBack }: ReplayRow): string {
  if (typeof before === 'string') return before === 'asleep' ? 'asleep' : 'not asked';
  return isHeldBack ? `${before.state}: held back` : before.state;
}

function afterText(row: ReplayRow, { watchMs }: GuardPolicy): string {
  const { outcome, harm, remedy, lowering, notTriedSinceMs, connections } = row;
  if (outcome === 'not_tried_again') return `not lowered, since undone at ${isoInstant(notTriedSinceMs ?? 0)}`;
  if (outcome === 'harm' && harm) {
    const since = sinceIso(harm.badSinceMs, lowering.atMs) ?? 'before';
    const dropped = connections === undefined ? '' : `, drops ${connections} connections`;
    const done = {
      notified: ': notified',
      undone: `: undone${dropped}`,
      undone_asleep: ': undone at its next sleep',
    }[remedy ?? 'notified'];
    return `harm, bad since ${since}, found ${isoInstant(harm.foundAtMs)}${done}`;
  }
  const watched = `${minutes(row.sampledMs)} of ${formatDuration(watchMs / 1000)}`;
  const texts = {
    healthy: 'healthy',
    harm: 'harm',
    common_cause: 'bad, common cause: notified',
    no_samples: 'no samples: notified',
    unfinished: `healthy for ${watched}, then changed, asleep or still watched`,
    not_known: 'not known: no samples of that time are left',
  };
  return texts[outcome];
}
