import type { PlanResult } from '../../app/situation/plan.ts';
import { printable } from '../../common/safe-text.ts';
import { planOnce } from '../../compose/situation.ts';
import { fleetPlanJson, plannedComputeJson } from '../../domain/evaluate/fleet-plan-json.ts';
import type { FleetPlan } from '../../domain/evaluate/plan-fleet.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { type FilterFlags, filtered, filtersByBranch, isNarrowed, selectComputes } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';
import { displayZone } from '../forecast/local-time.ts';
import { readAt } from '../forecast/span.ts';
import { missingJson, type NotPlanned, notPlannedJson, splitPlanned } from '../not-planned.ts';
import { type ReadPolicies, settingsAndPolicies } from '../or-fail.ts';
import { jsonText, writeErrLine, writeNotes, writeOut, writeWhole } from '../output.ts';
import { withProgress } from '../past/progress.ts';
import { colorsOf, MAX_IN_DETAIL } from '../terminal.ts';
import { describePlan } from './describe-plan.ts';
import { planMonth } from './month.ts';
import { approvalJson, approvalsNeeded, withApprovals } from './staged.ts';
import { summarySections } from './summary.ts';

export interface PlanFlags extends CommonFlags, FilterFlags {
  mode: 'enforce' | 'observe';
  out?: string;
  all?: boolean;
}

export async function runPlan(names: string[], flags: PlanFlags): Promise<void> {
  const atMs = readAt(flags.at);
  const isPartial = isNarrowed(names, flags);
  if (flags.out !== undefined && isPartial) {
    throw new UserError('--out keeps the whole plan; leave out names, --owner and --select');
  }
  const { settings, policies, broken } = await settingsAndPolicies(flags);
  const zone = displayZone(flags, [policies]);
  const { fleet: fleetFile, live, mode } = flags;
  const readBranches = filtersByBranch(flags);
  const planned = orFail(
    await withProgress(({ fleet: onProgress }) =>
      planOnce({ settings, policies, fleetFile, live, atMs, mode, readBranches, onProgress }),
    ),
  );
  const filters = { settings, policies: planned.policies };
  const computes = filtered(selectComputes(planned.plan.computes, names), flags, filters);
  const { plan, notPlanned } = withoutUnread({ ...planned.plan, computes }, planned.policies, broken);
  const approvals = approvalsNeeded(computes, { staged: planned.staged, policies, teams: settings.teams });
  const shown = { ...planned, plan: withApprovals(plan, approvals) };
  const document = {
    ...fleetPlanJson({ ...plan, computes: [] }),
    computes: computes.map((one) => ({ ...plannedComputeJson(one), ...approvalJson(approvals.get(one)) })),
    ...notPlannedJson(notPlanned),
    ...missingJson(planned.missing),
  };
  const json = `${jsonText(document)}\n`;
  if (flags.out !== undefined) await writeWhole(flags.out, json);
  // The text of the plan says what is missing.
  writePlanNotes(flags.json ? shown : { ...shown, missing: [] });
  const isInDetail = flags.all === true || isPartial;
  if (shown.missing.length > 0) process.exitCode = 1;
  if (plan.computes.some((one) => one.plan.verdict !== 'none')) process.exitCode ??= 2;
  writeOut(flags.json ? json : `${await asText(shown, { flags, settings, zone, isInDetail, notPlanned })}\n`);
}

/** The plan without computes of teams whose files can't be read. Computes that are changed all the same, as by a hold, stay in the plan. */
export function withoutUnread(plan: FleetPlan, policies: CompiledPolicies, broken: ReadPolicies['broken']) {
  const acting = plan.computes.filter((one) => one.plan.verdict === 'act');
  const others = plan.computes.filter((one) => one.plan.verdict !== 'act');
  const { planned, notPlanned } = splitPlanned(others, [policies], broken);
  const kept = new Set([...acting, ...planned]);
  return { plan: { ...plan, computes: plan.computes.filter((one) => kept.has(one)) }, notPlanned };
}

/** Writes notes, and parts of the fleet that are not in the plan, to standard error. */
export function writePlanNotes({ missing, notes }: Pick<PlanResult, 'missing' | 'notes'>): void {
  writeNotes({ notes });
  for (const line of missing) writeErrLine(`not in the plan: ${line}`);
}

async function asText(
  planned: PlanResult,
  options: {
    flags: PlanFlags;
    settings: Settings;
    zone: string;
    isInDetail: boolean;
    notPlanned: readonly NotPlanned[];
  },
): Promise<string> {
  const { settings, zone, isInDetail, notPlanned } = options;
  const { mode, out, live, fleet: fleetFile, usage: usageFile, operations: operationsFile } = options.flags;
  // A snapshot has no past of its own.
  const hasMonth = fleetFile === undefined || usageFile !== undefined || operationsFile !== undefined;
  const month = hasMonth
    ? await planMonth(planned, { settings, usageFile, operationsFile, fleetFile, live, notPlanned })
    : undefined;
  const { computes } = planned.plan;
  const colors = colorsOf(process.stdout);
  const concerned = computes.filter(({ plan }) => plan.verdict !== 'none').length;
  const ownerOf = ownersOf({
    rules: settings.owners,
    policies: planned.policies,
    computes: computes.map(({ compute }) => compute),
  });
  const savedOf = (owner: string) => month?.savedOf((compute) => ownerOf(compute) === owner);
  const isShort = !isInDetail && concerned > MAX_IN_DETAIL;
  const summary = isShort ? summarySections(computes, { colors, ownerOf, savedOf }) : undefined;
  const lines = [
    describePlan(planned.plan, { colors, zone, summary, notPlanned }),
    ...planned.missing.map((line) => printable(`Not in the plan: ${line}`)),
  ];
  if (process.exitCode === 2) lines.push('Exit code 2: there is something to do, now or later.');
  if (month) lines.push(month.text);
  const observed = fleetFile === undefined && mode === 'enforce' ? observedLine(planned.modes, settings) : undefined;
  if (observed !== undefined) lines.push(observed);
  if (out !== undefined) lines.push(`The plan is in ${out}: ebb apply --plan ${out}`);
  return lines.join('\n');
}

/** Says that no daemon would make the changes. Undefined if a daemon enforces, or one with these settings would. */
function observedLine(modes: PlanResult['modes'], settings: Settings): string | undefined {
  if (modes.includes('enforce')) return undefined;
  if (modes.length > 0) return 'The daemon observes: it writes none of these changes (mode: enforce, or ebb apply).';
  if (settings.mode === 'enforce') return undefined;
  return 'No daemon answers. One with these settings would only observe, unless it runs with --mode enforce.';
}
