import { Command } from 'commander';
import type { AppliedChange } from '../app/operator/apply-plan.ts';
import type { PlanResult } from '../app/situation/plan.ts';
import { printable } from '../common/safe-text.ts';
import type { Applying } from '../compose/applying.ts';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import { isoInstant } from '../domain/time/units.ts';
import { orFail, UserError } from './fail.ts';
import { type CommonFlags, withSourceFlags } from './flags.ts';
import type { ReadPolicies } from './or-fail.ts';
import { writeErr, writeJson, writeOut } from './output.ts';
import { untilInterrupted } from './signals.ts';
import type { Colors } from './terminal.ts';

interface ApplyFlags extends CommonFlags {
  plan?: string;
  yes?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb apply                                        shows the plan, asks, and applies it
  $ ebb plan --out plan.json; ebb apply --plan plan.json
  $ ebb apply --yes --json                           for scripts

It asks you to type the number of computes; without a terminal it needs --plan or --yes. With --plan it plans again,
and refuses if the result differs from the file or the file was edited. It writes whatever mode the settings have. Holds,
freezes and gates still apply: changes that wait are left to a daemon. It needs EBB_API_KEY or a key file, and the
store of the daemons; an embedded one (embedded:DIR) only while no daemon runs.
Exit code 0: everything planned for now is done. 1: something is not. 130: interrupted.`;

export function applyCommand(): Command {
  return withSourceFlags(new Command('apply'))
    .option('--plan <file>', 'apply exactly this plan (ebb plan --out), or refuse')
    .option('--yes', 'do not ask')
    .option('--json', 'print the result of each compute as JSON')
    .addHelpText('after', EXAMPLES)
    .action(apply);
}

async function apply(flags: ApplyFlags): Promise<void> {
  const mustAsk = flags.plan === undefined && flags.yes !== true;
  if (mustAsk && process.stdin.isTTY !== true) {
    throw new UserError('there is no terminal to ask on: use --yes, or --plan FILE (ebb plan --out FILE)');
  }
  const [{ settingsAndPolicies }, { openApplying }] = await Promise.all([
    import('./or-fail.ts'),
    import('../compose/applying.ts'),
  ]);
  const { settings, policies, broken } = await settingsAndPolicies(flags);
  const agreedPlan = flags.plan === undefined ? undefined : await readAgreedPlan(flags.plan);
  const applying = orFail(await openApplying({ settings, policies }));
  try {
    const planning = await planNow(applying);
    if (agreedPlan) await refuseIfDifferent(agreedPlan, planning);
    await showAndApply(applying, planning, { ...flags, broken });
  } finally {
    await applying.close();
  }
}

async function readAgreedPlan(path: string) {
  const { readPlanFile } = await import('./apply/plan-file.ts');
  return { path, file: await readPlanFile(path) };
}

async function planNow(applying: Applying): Promise<PlanResult> {
  const { withProgress } = await import('./past/progress.ts');
  const planned = orFail(await withProgress(({ fleet }) => applying.plan(fleet)));
  const { missing } = planned;
  if (missing.length === 0) return planned;
  throw new UserError([...missing, 'a part of the fleet cannot be read: nothing was changed'].join('\n'));
}

async function refuseIfDifferent(
  { path, file }: Awaited<ReturnType<typeof readAgreedPlan>>,
  { plan }: PlanResult,
): Promise<void> {
  const [{ differences }, { fleetPlanJson }] = await Promise.all([
    import('./apply/plan-file.ts'),
    import('../domain/evaluate/fleet-plan-json.ts'),
  ]);
  const lines = differences(file, fleetPlanJson(plan)).map((line) => `${path}: ${line}`);
  if (lines.length === 0) return;
  throw new UserError([...lines, `nothing was changed: make a new plan with ebb plan --out ${path}`].join('\n'));
}

/** With `--json` the plan and the progress go to standard error, so that standard output holds the result alone. */
async function showAndApply(
  applying: Applying,
  planning: PlanResult,
  { broken, ...flags }: ApplyFlags & Pick<ReadPolicies, 'broken'>,
): Promise<void> {
  const [{ withoutUnread, writePlanNotes }, { describePlan, nameOf }, { displayZone }, { colorsOf }] =
    await Promise.all([
      import('./plan/run-plan.ts'),
      import('./plan/describe-plan.ts'),
      import('./forecast/local-time.ts'),
      import('./terminal.ts'),
    ]);
  const { plan } = planning;
  const screen = flags.json ? process.stderr : process.stdout;
  const write = flags.json ? writeErr : writeOut;
  const colors = colorsOf(screen);
  writePlanNotes(planning);
  const zone = displayZone({}, [planning.policies.set]);
  const { plan: shown, notPlanned } = withoutUnread(plan, planning.policies, broken);
  write(`${describePlan(shown, { colors, zone, notPlanned })}\n\n`);
  await askUnlessAgreed(plan.computes.filter((one) => one.plan.verdict === 'act').length, flags, screen);
  let isInterrupted = false;
  const applyUntil = async (signal: AbortSignal) => {
    const results = await applying.applyPlan(planning, {
      signal,
      onBegin: ({ compute }) => write(`changing ${printable(compute.computeId)}\n`),
      onEnd: ({ compute }, applied) => write(`${describeEnd(nameOf(compute), applied, colors)}\n`),
    });
    isInterrupted = signal.aborted;
    return results;
  };
  // After an interrupt, changes that have begun are still finished.
  const results = await untilInterrupted(applyUntil, ['SIGINT', 'SIGTERM']);
  write(`${summariseResults(results.values())}\n`);
  if (flags.json) writeJson(resultsJson(plan.atMs, plan.hash, results));
  const allDone = [...results.values()].every(({ outcome }) => outcome === 'done');
  if (!allDone) process.exitCode = 1;
  if (isInterrupted) process.exitCode = 130;
}

async function askUnlessAgreed(count: number, { plan, yes }: ApplyFlags, output: NodeJS.WritableStream): Promise<void> {
  if (count === 0 || plan !== undefined || yes) return;
  const { confirmCount } = await import('./operator/confirm.ts');
  if (await confirmCount(count, { input: process.stdin, output })) return;
  throw new UserError('not confirmed: nothing was changed');
}

function describeEnd(name: string, applied: AppliedChange, colors: Colors): string {
  if (applied.outcome === 'done') return `${colors.green('done')}     ${name}`;
  const word = applied.outcome === 'failed' ? colors.red('failed ') : colors.yellow('skipped');
  return `${word}  ${name}: ${applied.message}`;
}

/** `2 done, 1 skipped`. */
function summariseResults(results: Iterable<AppliedChange>): string {
  const outcomes = [...results].map(({ outcome }) => outcome);
  const count = (wanted: AppliedChange['outcome']) => outcomes.filter((outcome) => outcome === wanted).length;
  const rest = (['failed', 'skipped'] as const).flatMap((word) => (count(word) > 0 ? [`${count(word)} ${word}`] : []));
  return [`${count('done')} done`, ...rest].join(', ');
}

function resultsJson(atMs: number, hash: string, results: ReadonlyMap<EvaluatedCompute, AppliedChange>): object {
  const computes = [...results].map(([{ compute }, applied]) => ({
    project_id: compute.projectId,
    compute_id: compute.computeId,
    ...applied,
  }));
  return { at: isoInstant(atMs), hash, computes };
}
