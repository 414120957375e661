import { countedComputes } from '../../common/names.ts';
import { readFacts } from '../../compose/situation.ts';
import { type Backtest, backtest } from '../../domain/backtest/backtest.ts';
import { type Recording, recordingEndMs } from '../../domain/backtest/replay.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { Span } from '../../domain/time/span.ts';
import type { Settings } from '../../settings/settings.ts';
import { limitingLines, unknownBudgetNotes } from '../forecast/budget-steps.ts';
import { readyWavesJson, waveLines } from '../forecast/fleet-waves.ts';
import { displayZone, formatSpan } from '../forecast/local-time.ts';
import { withLeaderDecisions } from '../forecast/outlook.ts';
import { AS_UNCHANGED, notPlannedNotes } from '../not-planned.ts';
import { settingsAndPolicies } from '../or-fail.ts';
import { jsonText, writeErrLine, writeNotes, writeOut, writeWhole } from '../output.ts';
import { findPolicy, type Recorded, type RecordingFlags, readRecordings } from './recordings.ts';
import { backtestJson, backtestTable } from './report.ts';
import { drawBacktest } from './svg.ts';
import { variantsOf } from './variants.ts';

export interface BacktestFlags extends RecordingFlags {
  policy: string;
  /** Shares. */
  targets?: number[];
  /** Milliseconds. */
  windows?: number[];
  svg?: string;
}

export async function runBacktest(names: string[], flags: BacktestFlags): Promise<void> {
  const { settings, policies: set, broken } = await settingsAndPolicies(flags);
  const policy = findPolicy(set, flags.policy);
  const zone = displayZone(flags, [set]);
  const recorded = await readRecordings({ settings, set, policy, flags, names, zone, nowMs: Date.now() });
  const { disruption, manualChanges } = settings;
  const span = spanOf(recorded.recordings);
  const { policies, notes } = await withDecisions(recorded, settings, span);
  const result = backtest({
    ...recorded,
    knownDecisions: policies,
    variants: variantsOf(policy, flags),
    disruption,
    manualChanges,
  });
  const context = { ...span, zone, policy: policy.name, policies };
  const computes = recorded.recordings.map(({ compute }) => compute);
  const unreadNotes = notPlannedNotes(computes, { policies, broken }, AS_UNCHANGED);
  writeNotes({ notes: [...recorded.notes, ...notes, ...enforcedNotes(policy), ...unreadNotes] });
  if (flags.svg !== undefined) await writeWhole(flags.svg, drawBacktest(result, context), '--svg');
  writeOut(`${flags.json ? asJson(result, context) : asText(result, context)}\n`);
  if (flags.svg !== undefined) writeErrLine(`drawn into ${flags.svg}`);
}

/** Adds to the policies the stored budget steps that limited within the span, and the waves that the fleet needs. */
async function withDecisions({ policies: set, fleet: subjects }: Recorded, settings: Settings, span: Span) {
  const hasBudgets = policiesOfKind(set.policies, 'budget').length > 0;
  const stored = hasBudgets ? await readFacts(settings, ['budgets'], Date.now()) : undefined;
  const budgets = stored?.facts?.budgets ?? [];
  const policies = withLeaderDecisions(compilePolicies(set), { budgets, subjects, readyWaves: [], settings, span });
  return { policies, notes: [...(stored?.notes ?? []), ...unknownBudgetNotes([set], budgets)] };
}

/** The replay assumes that a policy which only observes or advises is enforced. */
function enforcedNotes({ name, mode, act }: HeadroomPolicy): string[] {
  const idle = [...(mode === 'observe' ? ['mode: observe'] : []), ...(act === 'advise' ? ['act: advise'] : [])];
  return idle.length === 0 ? [] : [`${name} has ${idle.join(' and ')}: replayed as if it enforced`];
}

function spanOf(recordings: readonly Recording[]): Span {
  const starts = recordings.map(({ counts }) => counts[0]?.atMs ?? 0);
  return {
    fromMs: starts.reduce((earliest, ms) => Math.min(earliest, ms)),
    toMs: recordings.map(recordingEndMs).reduce((latest, ms) => Math.max(latest, ms)),
  };
}

type Context = Span & { zone: string; policy: string; policies: CompiledPolicies };

function asJson(result: Backtest, { policy, policies, ...span }: Context): string {
  return jsonText({ ...backtestJson(span, policy, result), ready_waves: readyWavesJson(policies.readyWaves, span) });
}

function asText(result: Backtest, { policy, zone, policies, ...span }: Context): string {
  const unknown = Math.round(result.asWritten.figures.minutesUnknown);
  return [
    `${policy} on ${countedComputes(result.computes.length)}, ${formatSpan(span, zone)}`,
    backtestTable(result),
    [
      '* as written. CU-hours from the minimum to the maximum of the size, while awake: docs/backtest.md.',
      ...limitingLines(policies.budgetSteps, policies.set, span),
      ...waveLines(policies.readyWaves, span),
      ...(unknown > 0 ? [`In ${unknown} minutes the connections are unknown: then nothing is lowered.`] : []),
    ].join('\n'),
  ].join('\n\n');
}
