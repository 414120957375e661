import { Command } from 'commander';
import type { Compute } from '../domain/compute/compute.ts';
import type { LateChange } from '../domain/forecast/hold-back.ts';
import { atMostText } from '../domain/plan/gates/disruption.ts';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import { policiesOfKind } from '../domain/policy/kinds/kinds.ts';
import { ownersOf } from '../domain/policy/owners.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import type { Span } from '../domain/time/span.ts';
import { isoInstant } from '../domain/time/units.ts';
import { UserError } from './fail.ts';
import { type FilterFlags, filtered, filtersByBranch, withFilterFlags } from './filter.ts';
import type { KnownBudgets } from './forecast/budget-steps.ts';
import type { Outlook } from './forecast/outlook.ts';
import type { SpanFlags } from './forecast/span.ts';
import { withLiveFlag } from './live-flag.ts';
import { jsonText, writeErrLine, writeOut, writeWhole } from './output.ts';
import { type DecidingFlags, settingsAndPolicies, withSourceFlags } from './plan/common-flags.ts';

interface ForecastFlags extends Omit<DecidingFlags, 'at'>, SpanFlags, FilterFlags {
  zone?: string;
  svg?: string;
  usage?: string;
  operations?: string;
  all?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb forecast                                     the next seven days of the whole fleet
  $ ebb forecast --fleet fleet.yaml --from 2026-03-23 --days 14 --zone Europe/Berlin
  $ ebb forecast 'web-*' --svg week.svg
  $ ebb forecast --json --from 2026-01-01 --to 2027-01-01

It shows what a daemon in enforce mode would set if policies stay as they are. It ignores policies with
"mode: observe", assumes that waiting changes are made immediately (but what at_most holds back, if all are awake), and
does not predict connections, so headroom is not evaluated. CU-hours are a range; what is expected within it rests on the usage of the last weeks: docs/forecast.md.
Prices need the plan of the account: "plan: launch" in ebb.yaml.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb forecast`: the sizes that computes will have, when, and the cost. */
export function forecastCommand(): Command {
  return withFilterFlags(withLiveFlag(withSourceFlags(new Command('forecast'))))
    .description('show which sizes computes will have, when, and the cost')
    .argument('[COMPUTE...]', 'ids or names of computes or projects, also globs (default: all)')
    .option('--fleet <file>', 'a snapshot, YAML or JSON, instead of the live fleet: no key is needed')
    .option(
      '--usage <file>',
      'usage.csv of `ebb usage export`, for what is expected (default: what daemons have collected)',
    )
    .option('--operations <file>', 'operations.csv of `ebb usage export`, for what timeouts save')
    .option('--days <n>', 'how many days, 1 to 366 (default: 7)')
    .option('--from <iso>', 'where it starts; without offset local time of --zone (default: now)')
    .option('--to <iso>', 'where it ends, instead of --days')
    .option('--zone <name>', 'IANA zone of days and hours (default: that of the first window, else UTC)')
    .option('--all', 'each compute, also of many')
    .option('--json', 'print it as JSON, instants in UTC')
    .option('--svg <file>', 'draw the whole time into an SVG file')
    .addHelpText('after', EXAMPLES)
    .action(forecast);
}

async function forecast(names: string[], flags: ForecastFlags): Promise<void> {
  const { settings, policies: set } = await settingsAndPolicies(flags);
  const {
    compilePolicies,
    displayZone,
    foresee,
    readForForecast,
    readSpan,
    foreseeByPast,
    selectComputes,
    unknownBudgetNotes,
    withLeaderDecisions,
    withProgress,
  } = await parts();
  const nowMs = Date.now();
  const zone = displayZone(flags.zone, [set]);
  const span = readSpan(flags, { zone, nowMs });
  const compiled = compilePolicies(set);
  const selectsByBranch = compiled.selectsByBranch || filtersByBranch(flags);
  const read = await withProgress(({ fleet }) =>
    readForForecast({
      ...{ settings, fleetFile: flags.fleet, live: flags.live },
      ...{ selectsByBranch, nowMs, onProgress: fleet },
    }),
  );
  if (!read.ok) throw new UserError(read.problem);
  const { knownAtMs, missing, notes, budgets } = read.value;
  const policies = withLeaderDecisions(compiled, { ...read.value, settings, span });
  const subjects = filtered(selectComputes(read.value.subjects, names), flags, { settings, policies });
  const computes = read.value.subjects.map(({ compute }) => compute);
  const files = { usageFile: flags.usage, operationsFile: flags.operations, fleetFile: flags.fleet };
  const { projects, takenAtMs, isStored } = read.value;
  const options = { settings, ...files, takenAtMs, isStored, computes, projects, nowMs };
  const [outlooks = []] = await foreseeByPast(options, (known) => [
    foresee({
      ...{ ...span, ...known, knownAtMs, policies, subjects },
      fleet: read.value.subjects,
      disruption: settings.disruption,
    }),
  ]);
  const guards = guardNotes(policies);
  for (const line of [
    ...notes,
    ...guards,
    ...unknownBudgetNotes([set], budgets),
    ...missing.map((line) => `left out: ${line}`),
  ])
    writeErrLine(`note: ${line}`);
  if (flags.svg !== undefined) await writeSvg(flags.svg, outlooks, { ...span, zone });
  const isInDetail = flags.all === true || names.length > 0 || (flags.owner ?? flags.select) !== undefined;
  const ownerOf = isInDetail ? undefined : ownersOf({ rules: settings.owners, policies, computes });
  writeOut(
    `${flags.json ? await asJson(span, outlooks, { policies, budgets, nowMs }) : await asText(outlooks, { ...span, zone, readyWaves: policies.readyWaves, ownerOf })}\n`,
  );
  if (flags.svg !== undefined) writeErrLine(`drawn into ${flags.svg}`);
  if (missing.length > 0) process.exitCode = 1;
}

async function parts() {
  const [policies, reading, zones, outlooks, spans, byPast, budgets, selecting, progress] = await Promise.all([
    import('../domain/policy/compiled-policies.ts'),
    import('../compose/situation.ts'),
    import('./forecast/local-time.ts'),
    import('./forecast/outlook.ts'),
    import('./forecast/span.ts'),
    import('./forecast/by-past.ts'),
    import('./forecast/budget-steps.ts'),
    import('./select-named.ts'),
    import('./past/progress.ts'),
  ]);
  return {
    ...policies,
    ...reading,
    ...zones,
    ...outlooks,
    ...spans,
    ...byPast,
    ...budgets,
    ...selecting,
    ...progress,
  };
}

/** Whether a guard will be healthy then, nobody knows. */
function guardNotes({ set }: Pick<CompiledPolicies, 'set'>): string[] {
  return policiesOfKind(set.policies, 'guard')
    .filter(({ mode }) => mode === 'enforce')
    .map(({ name }) => `guard ${name} may hold lowerings of awake computes back, which this does not foresee`);
}

async function asJson(
  span: Span,
  outlooks: readonly Outlook[],
  known: KnownBudgets & { policies: Pick<CompiledPolicies, 'readyWaves'> },
): Promise<string> {
  const [{ forecastJson }, { budgetStepsJson }, { readyWavesJson }] = await Promise.all([
    import('./forecast/report.ts'),
    import('./forecast/budget-steps.ts'),
    import('./forecast/herd-waves.ts'),
  ]);
  const { readyWaves } = known.policies;
  return jsonText({
    ...forecastJson(span, outlooks),
    budget_steps: budgetStepsJson(known),
    ready_waves: readyWavesJson(readyWaves, span),
    held_back: heldBackJson(outlooks),
  });
}

async function asText(
  outlooks: readonly Outlook[],
  options: Span & {
    zone: string;
    readyWaves: readonly ReadyWaves[];
    /** Absent: computes are shown one by one, however many there are. */
    ownerOf: ((compute: Compute) => string) | undefined;
  },
): Promise<string> {
  if (outlooks.length === 0) return 'The fleet has no computes.';
  const [{ drawWeek }, { outlookTable, ownerTable, balanceLines }, { formatSpan }, { waveLines }, { MOST_IN_DETAIL }] =
    await Promise.all([
      import('./forecast/drawing.ts'),
      import('./forecast/report.ts'),
      import('./forecast/local-time.ts'),
      import('./forecast/herd-waves.ts'),
      import('./plan/summary.ts'),
    ]);
  const { isTTY, columns } = process.stdout;
  const color = isTTY === true && process.stdout.hasColors();
  const delays = [...waveLines(options.readyWaves, options), ...heldBackLines(outlooks)];
  return [
    formatSpan(options, options.zone),
    ...(options.ownerOf && outlooks.length > MOST_IN_DETAIL
      ? [ownerTable(outlooks, options.ownerOf), 'Each compute: ebb forecast --owner TEAM, or --all']
      : [drawWeek(outlooks, { ...options, columns: columns || 80, color }), outlookTable(outlooks)]),
    ...(delays.length > 0 ? [delays.join('\n')] : []),
    balanceLines(outlooks).join('\n'),
  ].join('\n\n');
}

async function writeSvg(file: string, outlooks: readonly Outlook[], options: Span & { zone: string }): Promise<void> {
  const { drawSvg } = await import('./forecast/svg.ts');
  await writeWhole(file, drawSvg(outlooks, options), '--svg');
}

/** The text lists this many delayed changes, and counts the rest. */
const MOST_LINES = 10;

/** Changes that one policy wants at one instant and that `disruption.at_most` delays. */
interface HeldBack extends Omit<LateChange, 'madeAtMs'> {
  computes: number;
  /** The last of them; null if some never happen, because something else is wanted first or the time ends. */
  lastAtMs: number | null;
}

/** The delayed changes of all computes, in the order of the instants at which they are wanted. */
function heldBackOf(outlooks: readonly Outlook[]): HeldBack[] {
  const found = new Map<string, HeldBack>();
  for (const { madeAtMs, ...wanted } of outlooks.flatMap(({ late }) => late ?? [])) {
    const key = `${wanted.wantedAtMs} ${wanted.policy}`;
    const known = found.get(key) ?? { ...wanted, computes: 0, lastAtMs: 0 };
    const lastAtMs = known.lastAtMs === null || madeAtMs === undefined ? null : Math.max(known.lastAtMs, madeAtMs);
    found.set(key, { ...known, computes: known.computes + 1, lastAtMs });
  }
  return [...found.values()].sort((a, b) => a.wantedAtMs - b.wantedAtMs);
}

/** The delayed changes, for `--json`. */
export function heldBackJson(outlooks: readonly Outlook[]) {
  return heldBackOf(outlooks).map(({ policy, limit, wantedAtMs, computes, lastAtMs }) => ({
    policy,
    at_most: atMostText(limit),
    wanted_at: isoInstant(wantedAtMs),
    computes,
    last_at: lastAtMs === null ? null : isoInstant(lastAtMs),
  }));
}

/** The delayed changes as lines; none if nothing is delayed. */
export function heldBackLines(outlooks: readonly Outlook[]): string[] {
  const all = heldBackOf(outlooks);
  const lines = all.slice(0, MOST_LINES).map(({ policy, limit, wantedAtMs, computes, lastAtMs }) => {
    const many = `${computes} ${computes === 1 ? 'compute' : 'computes'}`;
    const last = lastAtMs === null ? 'some not before something else is wanted' : `the last at ${isoInstant(lastAtMs)}`;
    return `Held back by at_most ${atMostText(limit)} of ${policy} at ${isoInstant(wantedAtMs)}, if all are awake: ${many}, ${last}.`;
  });
  const more = all.length - lines.length;
  return more > 0 ? [...lines, `The same ${more} more times: --json lists them.`] : lines;
}
