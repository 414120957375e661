import { Command, Option } from 'commander';
import type { PlanResult } from '../app/situation/plan.ts';
import { ownersOf } from '../domain/policy/owners.ts';
import type { Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import { type FilterFlags, filtered, filtersByBranch, withFilterFlags } from './filter.ts';
import { withLiveFlag } from './live-flag.ts';
import { jsonText, writeOut, writeWhole } from './output.ts';
import {
  type DecidingFlags,
  instantOf,
  printAsides,
  settingsAndPolicies,
  withSourceFlags,
  withSubjectFlags,
} from './plan/common-flags.ts';

interface PlanFlags extends DecidingFlags, FilterFlags {
  mode: 'enforce' | 'observe';
  out?: string;
  usage?: string;
  operations?: string;
  zone?: string;
  all?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb plan                                         what a daemon in enforce mode would do now
  $ ebb plan 'web-*' --zone Europe/Berlin            of these projects, in times of this zone
  $ ebb plan --owner team-web                        each change of a team; --all: each of all teams
  $ ebb plan --out plan.json                         and then: ebb apply --plan plan.json
  $ ebb plan --live                                  asks the API, not what daemons have stored of the fleet
  $ ebb plan --fleet snapshot.yaml --at 2026-03-02T08:00:00+01:00
  $ ebb plan --json | jq '.computes[] | select(.verdict == "act")'

It plans for enforce mode, whatever mode the settings have. With --mode observe everything waits, as in a daemon
that observes. Nothing is written except the file of --out. More than 40 computes with changes are summed up by team.
Exit code 0: nothing to do. 2: something to do, now or later. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb plan`: changes and their reasons, and waiting changes. */
export function planCommand(): Command {
  return withFilterFlags(withLiveFlag(withSubjectFlags(withSourceFlags(new Command('plan')))))
    .description('show what would be changed, and why')
    .argument('[COMPUTE...]', 'ids or names of computes or projects, also globs (default: all)')
    .addOption(new Option('--mode <mode>', 'plan for this mode').choices(['enforce', 'observe']).default('enforce'))
    .option('--usage <file>', 'usage.csv of `ebb usage export`, for the cost (default: what daemons have collected)')
    .option('--operations <file>', 'operations.csv of `ebb usage export`, for what timeouts save')
    .option('--zone <name>', 'IANA zone of times (default: that of the first window, else UTC)')
    .option('--all', 'each change, also of many computes')
    .option('--json', 'print the plan as JSON, instants in UTC')
    .option('--out <file>', 'write the plan to this file, as JSON, for ebb apply --plan')
    .addHelpText('after', EXAMPLES)
    .action(plan);
}

async function plan(names: string[], flags: PlanFlags): Promise<void> {
  const atMs = instantOf(flags.at);
  if (flags.out !== undefined && (names.length > 0 || (flags.owner ?? flags.select) !== undefined)) {
    throw new UserError('--out keeps the whole plan; leave out names, --owner and --select');
  }
  const { settings, policies } = await settingsAndPolicies(flags);
  const { planOnce, fleetPlanJson, withProgress, displayZone, selectComputes } = await parts();
  const zone = displayZone(flags.zone, [policies]);
  const wanted = { settings, policies, fleetFile: flags.fleet, live: flags.live, atMs, mode: flags.mode };
  const planned = await withProgress(({ fleet }) =>
    planOnce({ ...wanted, readBranches: filtersByBranch(flags), onProgress: fleet }),
  );
  if (!planned.ok) throw new UserError(planned.problem);
  const { policies: compiled, plan: whole } = planned.value;
  const computes = filtered(selectComputes(whole.computes, names), flags, { settings, policies: compiled });
  const value = { ...planned.value, plan: { ...whole, computes } };
  const json = `${jsonText(fleetPlanJson(value.plan))}\n`;
  if (flags.out !== undefined) await writeWhole(flags.out, json);
  printAsides(value);
  const isInDetail = flags.all === true || names.length > 0 || (flags.owner ?? flags.select) !== undefined;
  writeOut(flags.json ? json : `${await asText(value, { ...flags, zone, isInDetail }, settings)}\n`);
  const toDo = value.plan.computes.some(({ plan: { verdict } }) => verdict !== 'none');
  if (toDo) process.exitCode ??= 2;
  if (value.missing.length > 0) process.exitCode = 1;
}

async function parts() {
  const [planning, json, progress, zones, selecting] = await Promise.all([
    import('../compose/situation.ts'),
    import('../domain/evaluate/fleet-plan-json.ts'),
    import('./past/progress.ts'),
    import('./forecast/local-time.ts'),
    import('./select-named.ts'),
  ]);
  return { ...planning, ...json, ...progress, ...zones, ...selecting };
}

async function asText(
  planning: PlanResult,
  { mode, out, fleet, usage, operations, zone, isInDetail }: PlanFlags & { zone: string; isInDetail: boolean },
  settings: Settings,
): Promise<string> {
  const [{ describePlan }, { colorsOf }, { planMonth }, { MOST_IN_DETAIL, summarySections }] = await Promise.all([
    import('./plan/describe-plan.ts'),
    import('./terminal.ts'),
    import('./plan/month.ts'),
    import('./plan/summary.ts'),
  ]);
  const observes = fleet === undefined && mode === 'enforce' && settings.mode === 'observe';
  // A snapshot has no past of its own.
  const hasMonth = fleet === undefined || (usage ?? operations) !== undefined;
  const files = { usageFile: usage, operationsFile: operations, fleetFile: fleet };
  const month = hasMonth ? await planMonth(planning, { settings, ...files }) : undefined;
  const { computes } = planning.plan;
  const colors = colorsOf(process.stdout);
  const isShort = !isInDetail && computes.filter(({ plan }) => plan.verdict !== 'none').length > MOST_IN_DETAIL;
  const all = computes.map(({ compute }) => compute);
  const ownerOf = ownersOf({ rules: settings.owners, policies: planning.policies, computes: all });
  const savedOf = (owner: string) => month?.savedOf((compute) => ownerOf(compute) === owner);
  const summary = isShort ? summarySections(computes, { colors, ownerOf, savedOf }) : undefined;
  return [
    describePlan(planning.plan, { colors, zone, summary }),
    ...(computes.some(({ plan }) => plan.verdict !== 'none')
      ? ['Exit code 2: there is something to do, now or later.']
      : []),
    ...(month ? [month.text] : []),
    ...(observes
      ? ['A daemon with these settings observes: of this it would write nothing (mode: enforce, or ebb apply).']
      : []),
    ...(out === undefined ? [] : [`The plan is in ${out}: ebb apply --plan ${out}`]),
  ].join('\n');
}
