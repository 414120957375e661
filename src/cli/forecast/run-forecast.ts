import { missingSteps } from '../../app/situation/plan.ts';
import type { ForecastStart } from '../../app/situation/read-situation.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { evaluateNow } from '../../domain/evaluate/evaluate.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import type { Span } from '../../domain/time/span.ts';
import type { Settings } from '../../settings/settings.ts';
import { type FilterFlags, filtered, filtersByBranch, isNarrowed, selectComputes } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';
import { missingJson, type NotPlanned, notPlannedJson, notPlannedLines, splitPlanned } from '../not-planned.ts';
import { settingsAndPolicies } from '../or-fail.ts';
import { jsonText, writeErrLine, writeNotes, writeOut, writeWhole } from '../output.ts';
import { readForecastStart } from '../read-fleet.ts';
import { MAX_IN_DETAIL } from '../terminal.ts';
import { budgetStepsJson, unknownBudgetNotes } from './budget-steps.ts';
import { forecastEach } from './by-past.ts';
import { drawWeek } from './drawing.ts';
import { readyWavesJson, waveLines } from './fleet-waves.ts';
import { guardedJson, guardedLines } from './guarded.ts';
import { heldBackJson, heldBackLines } from './held-back.ts';
import { displayZone, formatSpan } from './local-time.ts';
import { type Outlook, withLeaderDecisions } from './outlook.ts';
import { balanceLines, forecastJson, outlookTable, ownerTable } from './report.ts';
import { readSpan, type SpanFlags } from './span.ts';
import { drawSvg } from './svg.ts';

export interface ForecastFlags extends CommonFlags, SpanFlags, FilterFlags {
  svg?: string;
  all?: boolean;
}

export async function runForecast(names: string[], flags: ForecastFlags): Promise<void> {
  const { settings, policies: set, broken } = await settingsAndPolicies(flags);
  const nowMs = Date.now();
  const zone = displayZone(flags, [set]);
  const span = readSpan(flags, { zone, nowMs });
  const compiled = compilePolicies(set);
  const selectsByBranch = compiled.selectsByBranch || filtersByBranch(flags);
  const read = await readForecastStart(settings, flags, { selectsByBranch, nowMs });
  const { budgets } = read;
  const missing = [...read.missing, ...missingSteps([set], read)];
  const policies = withLeaderDecisions(compiled, { ...read, settings, span });
  const start = { ...read, subjects: withRespected(read, { policies, settings, nowMs }) };
  const wanted = filtered(selectComputes(start.subjects, names), flags, { settings, policies });
  const { planned: subjects, notPlanned } = splitPlanned(wanted, [policies], broken);
  const [outlooks = []] = await forecastEach([policies], start, { settings, flags, span, subjects, nowMs });
  writeNotes({ notes: [...start.notes, ...guardNotes(policies), ...unknownBudgetNotes([set], budgets)], missing });
  if (flags.svg !== undefined) await writeWhole(flags.svg, drawSvg(outlooks, { ...span, zone }), '--svg');
  const { readyWaves } = policies;
  if (flags.json) {
    const document = {
      ...forecastJson(span, outlooks),
      budget_steps: budgetStepsJson(policies.set, { budgets, nowMs }),
      ready_waves: readyWavesJson(readyWaves, span),
      held_back: heldBackJson(outlooks),
      guards: guardedJson(outlooks, policies),
      ...notPlannedJson(notPlanned),
      ...missingJson(missing),
    };
    writeOut(`${jsonText(document)}\n`);
  } else {
    const computes = start.subjects.map(({ compute }) => compute);
    const isInDetail = flags.all === true || isNarrowed(names, flags);
    const ownerOf = isInDetail ? undefined : ownersOf({ rules: settings.owners, policies, computes });
    writeOut(`${forecastText(outlooks, { ...span, zone, readyWaves, ownerOf, policies, notPlanned })}\n`);
  }
  if (flags.svg !== undefined) writeErrLine(`drawn into ${flags.svg}`);
}

/** The computes with the ends of the manual changes that are respected now. */
function withRespected(
  { subjects, records }: Pick<ForecastStart, 'subjects' | 'records'>,
  { policies, settings, nowMs }: { policies: CompiledPolicies; settings: Settings; nowMs: number },
): ForecastSubject[] {
  const { manualChanges } = settings;
  return subjects.map((subject) => {
    const { compute, holds = [] } = subject;
    const record = records.get(compute.computeId);
    if (!record?.manual) return subject;
    const situation = { policies, compute, record, holds, nowMs, mode: 'enforce', projectBusy: false } as const;
    return { ...subject, respected: evaluateNow({ ...situation, manualChanges }).respected };
  });
}

/** A forecast does not know if a guard will be healthy. */
function guardNotes({ set }: CompiledPolicies): string[] {
  return policiesOfKind(set.policies, 'guard')
    .filter(({ mode }) => mode === 'enforce')
    .map(({ name }) => `guard ${name} may hold lowerings of awake computes back, which this does not foresee`);
}

interface TextOptions extends Span {
  zone: string;
  readyWaves: readonly ReadyWaves[];
  policies: CompiledPolicies;
  notPlanned: readonly NotPlanned[];
  /** Absent: computes are shown one by one, however many there are. */
  ownerOf: ((compute: Compute) => string) | undefined;
}

function forecastText(outlooks: readonly Outlook[], options: TextOptions): string {
  const unforeseen = notPlannedLines(options.notPlanned, 'not foreseen');
  if (outlooks.length === 0) return unforeseen.join('\n') || 'The fleet has no computes.';
  const { isTTY, columns } = process.stdout;
  const color = isTTY === true && process.stdout.hasColors();
  const delays = [
    ...waveLines(options.readyWaves, options),
    ...heldBackLines(outlooks),
    ...guardedLines(outlooks, options.policies),
  ];
  return [
    formatSpan(options, options.zone),
    ...(options.ownerOf && outlooks.length > MAX_IN_DETAIL
      ? [ownerTable(outlooks, options.ownerOf), 'Each compute: ebb forecast --owner TEAM, or --all']
      : [drawWeek(outlooks, { ...options, columns: columns || 80, color }), outlookTable(outlooks)]),
    ...(delays.length > 0 ? [delays.join('\n')] : []),
    [...unforeseen, ...balanceLines(outlooks)].join('\n'),
  ].join('\n\n');
}
