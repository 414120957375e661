import { Command } from 'commander';
import type { Backtest } from '../domain/backtest/backtest.ts';
import type { Recording } from '../domain/backtest/recording.ts';
import type { Span } from '../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import type { HeadroomPolicy } from '../domain/policy/kinds/headroom.ts';
import { policiesOfKind } from '../domain/policy/kinds/kinds.ts';
import type { Settings } from '../settings/settings.ts';
import type { Recorded, RecordingFlags } from './backtest/recordings.ts';
import { parseTargets, parseWindows } from './backtest/variants.ts';
import { parseFor, parseSize, parseSuspendAfter } from './operator/parse-flags.ts';
import { jsonText, writeErrLine, writeOut, writeWhole } from './output.ts';
import { settingsAndPolicies } from './plan/common-flags.ts';

interface BacktestFlags extends RecordingFlags {
  policy: string;
  config?: string;
  policies?: string;
  targets?: number[];
  windows?: number[];
  zone?: string;
  json?: boolean;
  svg?: string;
}

const EXAMPLES = `
Examples:
  $ ebb backtest --policy web-headroom --connections counts.csv
  $ ebb backtest --policy web-headroom --connections counts.csv --fleet fleet.yaml --targets 60%,70%,80% --windows 15m,1h
  $ ebb backtest --policy web-headroom --prometheus --from 2026-03-02 --to 2026-03-09 ep-shop-1 --svg week.svg

The file has the columns time,compute,connections and, if you have it, max_connections. It is replayed by the engine of
the daemon, once for the policy as written (*), for each alternative, and without the policy. Without --fleet this policy
alone counts, on computes that begin at --size. No key is needed, nothing is written. docs/backtest.md says what is assumed.`;

/** `ebb backtest`: what a headroom policy would have done with connections that were recorded. */
export function backtestCommand(): Command {
  return new Command('backtest')
    .description('show what a headroom policy would have done with recorded connections')
    .argument('[COMPUTE...]', 'ids of computes, also globs (default: all that were recorded)')
    .requiredOption('--policy <name>', 'the headroom policy')
    .option('--connections <file>', 'CSV: time,compute,connections[,max_connections]')
    .option('--prometheus', "ask the policy's source for what it remembers, instead of a file")
    .option('--source <name>', 'another source from prometheus than that of the policy')
    .option('--from <iso>', 'where the range query starts; without offset local time of --zone')
    .option('--to <iso>', 'where it ends (default: now)')
    .option('--step <duration>', 'its step (default: the interval of the source)', parseFor)
    .option('--fleet <file>', 'a snapshot, YAML or JSON: what the computes have, and which other policies select them')
    .option('--size <size>', 'without --fleet: the size at which computes begin (default: 0.25)', parseSize)
    .option('--suspend-after <duration>', 'without --fleet: when they suspend (default: 5m)', parseSuspendAfter)
    .option('--targets <shares>', 'targets to try, e.g. 60%,70%,80%', parseTargets)
    .option('--windows <durations>', 'windows of scale_down to try, e.g. 15m,30m,1h', parseWindows)
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--policies <paths>', 'files, folders, globs, separated by commas (EBB_POLICIES; default: policies)')
    .option('--zone <name>', 'IANA zone of days and hours (default: that of the first window, else UTC)')
    .option('--json', 'print it as JSON, instants in UTC')
    .option('--svg <file>', 'draw connections and what the sizes give into an SVG file')
    .addHelpText('after', EXAMPLES)
    .action(runBacktest);
}

async function runBacktest(names: string[], flags: BacktestFlags): Promise<void> {
  const { settings, policies: set } = await settingsAndPolicies(flags);
  const { backtest, displayZone, findPolicy, readRecordings, variantsOf } = await parts();
  const policy = findPolicy(set, flags.policy);
  const zone = displayZone(flags.zone, [set]);
  const recorded = await readRecordings({ settings, set, policy, flags, names, zone, nowMs: Date.now() });
  const { disruption, manualChanges } = settings;
  const span = await spanOf(recorded.recordings);
  const { decided, notes } = await decidedFor(recorded, settings, span);
  const result = backtest({ ...recorded, decided, variants: variantsOf(policy, flags), disruption, manualChanges });
  const framing = { ...span, zone, policy: policy.name, decided };
  for (const note of [...recorded.notes, ...notes, ...onTheirOwn(policy)]) writeErrLine(`note: ${note}`);
  if (flags.svg !== undefined) await writeSvg(flags.svg, result, framing);
  writeOut(`${flags.json ? await asJson(result, framing) : await asText(result, framing)}\n`);
  if (flags.svg !== undefined) writeErrLine(`drawn into ${flags.svg}`);
}

async function parts() {
  const [{ backtest }, { displayZone }, { findPolicy }, { readRecordings }, { variantsOf }] = await Promise.all([
    import('../domain/backtest/backtest.ts'),
    import('./forecast/local-time.ts'),
    import('./backtest/recordings.ts'),
    import('./backtest/recordings.ts'),
    import('./backtest/variants.ts'),
  ]);
  return { backtest, displayZone, findPolicy, readRecordings, variantsOf };
}

/** Budget steps that limited in that time, as far as a store knows, and the fleet's ready waves. */
async function decidedFor({ policies: set, herd: subjects }: Recorded, settings: Settings, span: Span) {
  const [{ compilePolicies }, { withLeaderDecisions }, { unknownBudgetNotes }, { readFacts }] = await Promise.all([
    import('../domain/policy/compiled-policies.ts'),
    import('./forecast/outlook.ts'),
    import('./forecast/budget-steps.ts'),
    import('../compose/situation.ts'),
  ]);
  const hasBudgets = policiesOfKind(set.policies, 'budget').length > 0;
  const stored = hasBudgets ? await readFacts(settings, 'budgets', Date.now()) : undefined;
  const budgets = stored?.facts.budgets ?? [];
  const decided = withLeaderDecisions(compilePolicies(set), { budgets, subjects, readyWaves: [], settings, span });
  return { decided, notes: [...(stored?.notes ?? []), ...unknownBudgetNotes([set], budgets)] };
}

/** Assumptions of the figures where the policy alone would do nothing. */
function onTheirOwn({ name, mode, act }: HeadroomPolicy): string[] {
  const idle = [...(mode === 'observe' ? ['mode: observe'] : []), ...(act === 'advise' ? ['act: advise'] : [])];
  return idle.length === 0 ? [] : [`${name} has ${idle.join(' and ')}: replayed as if it enforced`];
}

async function spanOf(recordings: readonly Recording[]): Promise<Span> {
  const { endOf } = await import('../domain/backtest/recording.ts');
  const starts = recordings.map(({ counts }) => counts[0]?.atMs ?? 0);
  return {
    fromMs: starts.reduce((earliest, ms) => Math.min(earliest, ms)),
    toMs: recordings.map(endOf).reduce((latest, ms) => Math.max(latest, ms)),
  };
}

type Framing = Span & { zone: string; policy: string; decided: CompiledPolicies };

async function asJson(result: Backtest, { policy, decided, ...span }: Framing): Promise<string> {
  const [{ backtestJson }, { readyWavesJson }] = await Promise.all([
    import('./backtest/report.ts'),
    import('./forecast/herd-waves.ts'),
  ]);
  return jsonText({
    ...backtestJson(span, policy, result),
    ready_waves: readyWavesJson(decided.readyWaves, span),
  });
}

async function asText(result: Backtest, { policy, zone, decided, ...span }: Framing): Promise<string> {
  const [{ backtestTable }, { formatSpan }, { limitingLines }, { waveLines }] = await Promise.all([
    import('./backtest/report.ts'),
    import('./forecast/local-time.ts'),
    import('./forecast/budget-steps.ts'),
    import('./forecast/herd-waves.ts'),
  ]);
  const many = result.computes.length;
  const unknown = Math.round(result.asWritten.figures.minutesUnknown);
  return [
    `${policy} on ${many} ${many === 1 ? 'compute' : 'computes'}, ${formatSpan(span, zone)}`,
    backtestTable(result),
    [
      '* as written. CU-hours from the minimum to the maximum of the size, while awake: docs/backtest.md.',
      ...limitingLines(decided.budgetSteps, decided.set, span),
      ...waveLines(decided.readyWaves, span),
      ...(unknown > 0 ? [`Nothing is known of ${unknown} minutes: nothing is lowered in them.`] : []),
    ].join('\n'),
  ].join('\n\n');
}

async function writeSvg(file: string, result: Backtest, framing: Framing): Promise<void> {
  const { drawBacktest } = await import('./backtest/svg.ts');
  await writeWhole(file, drawBacktest(result, framing), '--svg');
}
