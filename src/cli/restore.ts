import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { chunksOf } from '../common/chunks.ts';
import { countedComputes, firstNames } from '../common/names.ts';
import { parseJson } from '../common/result.ts';
import { printable } from '../common/safe-text.ts';
import type { Operator } from '../compose/operator-access.ts';
import { formatSuspendTimeout } from '../domain/compute/compute-units.ts';
import { sum } from '../domain/sum.ts';
import { UserError } from './fail.ts';
import { groupAlike, namesOf } from './group-alike.ts';
import { type Answer, actingCommand, actorOf, answered, withOperator } from './operator/access.ts';
import { agreedCount, type ConfirmFlags, withConfirmFlags } from './operator/confirm.ts';
import { inFlightLines, printAnswer, printLines, printTable, sizeText } from './operator/show.ts';
import { writeErrLine, writeOut } from './output.ts';
import { MAX_IN_DETAIL, teamTable } from './terminal.ts';

const EXAMPLES = `
Examples:
  $ ebb restore ep-cool-sea-12345678
  $ ebb restore --all                 after the policies were removed; shows what goes back, and asks
  $ ebb restore --owner team-web      the computes of a team, each in a row
  $ ebb restore --all --now --yes     without waiting for computes to sleep, and without a question
  $ ebb restore --from baseline.json  what ebb init has saved, such as after the store was lost
  $ ebb restore --cancel --all        withdraws what still waits

This goes back to the baseline: what each compute had when ebb first saw it, or what a person has set since. A daemon
in enforce mode applies it like any other change, and gates apply: a disruptive change waits for sleep, for at most
two hours. The request is valid for a day.
For more than one compute it asks you to type their number; without a terminal it needs --confirm NUMBER or --yes.
More than 40 are summed up first, with --all by team. --owner is a team only where neither computes nor --all nor
--from are given: beside them it still is the former name of --by.
Fields that a policy sets are not restored, and the request for them is dropped: remove the policy first, or hold the
compute (ebb hold). With --from the values of the file replace the stored ones, also where ebb has changed nothing; ids
choose some of its computes.`;

type RestoreRequest = Parameters<Operator['restore']>[0];

type Restored = Answer<'restore'>['computes'][number];

interface RestoreFlags extends ConfirmFlags {
  all?: boolean;
  from?: string;
  now?: boolean;
  cancel?: boolean;
}

/** The most computes in one request. */
const AT_ONCE = 500;

export function restoreCommand(): Command {
  const owner = new Option('--owner <name>', 'the computes of this team, instead of COMPUTE or --all');
  return withConfirmFlags(actingCommand('restore', owner))
    .argument('[COMPUTE...]', 'ids of computes, or projects that have only one')
    .option('--all', 'every compute that ebb has changed')
    .option('--from <file>', 'back to the values of this file, as ebb init writes it')
    .option('--now', 'without waiting for sleep: clients are disconnected')
    .option('--cancel', 'withdraw requests that still wait')
    .addHelpText('after', EXAMPLES)
    .action(restore);
}

async function restore(computes: string[], flags: RestoreFlags): Promise<void> {
  const team = teamNamed(computes, flags);
  if ((flags.all || flags.from !== undefined) && flags.owner !== undefined)
    writeErrLine(`warning: ${flags.all ? '--all' : '--from'} means the computes of all teams, whatever --owner says`);
  const given = await requestsOf(computes, flags);
  await withOperator(flags, async ({ operator, via }) => {
    const requests = team === undefined ? given : await requestsOfTeam(operator, team, given);
    if (flags.cancel) return cancel(operator, requests, flags);
    const isInDetail = team !== undefined || computes.length > 0;
    const restored = await askAndSend(operator, requests, { ...flags, isInDetail });
    const { count } = restored;
    const lines = [`requested: ${countedComputes(count)} to go back; to withdraw it: ebb restore --cancel`];
    if (via === 'store') lines.push('the daemon on this store applies it in enforce mode, or ebb apply does');
    printAnswer(flags, restored, count > 0 ? lines : []);
  });
}

/** Previews all requests, and asks once for all of them. Sends each with the number of computes in its preview, or for any number with `--yes`. */
export async function askAndSend(
  operator: Pick<Operator, 'restore'>,
  requests: readonly RestoreRequest[],
  flags: RestoreFlags & PreviewOptions,
) {
  const previews: Answer<'restore'>[] = [];
  for (const request of requests) previews.push(await answered(operator.restore({ ...request, preview: true })));
  const all = previews.flatMap(({ computes }) => computes);
  noteMissing(requests, all);
  const counts = previews.map(({ count = 0 }) => count);
  if (!flags.json) showPreview(all, flags);
  const agreed = await agreedCount(sum(counts), flags);
  const restored: { computes: Restored[]; count: number } = { computes: [], count: 0 };
  for (const [index, request] of requests.entries()) {
    const confirm = agreed === undefined ? 'any' : counts[index];
    const { computes, count = 0 } = await answered(operator.restore({ ...request, confirm }));
    restored.computes.push(...computes);
    restored.count += count;
  }
  return restored;
}

interface PreviewOptions extends Pick<RestoreFlags, 'all' | 'from'> {
  /** Each compute has a row, however many there are. */
  isInDetail?: boolean;
}

function showPreview(all: readonly Restored[], { all: isWholeFleet, from, isInDetail = false }: PreviewOptions): void {
  const shown = all.filter(({ outcome }) => !isWholeFleet || outcome !== 'nothing_to_do');
  if (shown.length === 0) {
    printLines(['nothing to bring back']);
    return;
  }
  const isShort = !isInDetail && shown.length > MAX_IN_DETAIL;
  if (isShort && from === undefined) writeOut(`${outcomesByTeam(shown)}\n\n`);
  printTable(['compute', 'baseline', ''], isShort ? groupedRows(shown) : shown.map(rowOf));
  const [requested = 0, partly = 0, leftToPolicies, unchanged] = countsOf(all);
  const parts = [
    `${countedComputes(requested)} to go back${partly > 0 ? `, ${partly} of them in part` : ''}`,
    `${leftToPolicies} left to policies`,
    `${unchanged} with nothing to do`,
  ];
  const details = from === undefined ? '--owner TEAM' : '--from FILE COMPUTE…';
  printLines([parts.join('; '), ...(isShort ? [`Details: ebb restore ${details}`] : [])]);
}

/** Counts the computes that go back, those of them that go back only in part, those left to policies, and those with nothing to do. */
function countsOf(all: readonly Restored[]): number[] {
  const countOf = (outcome: Restored['outcome']) => all.filter((one) => one.outcome === outcome).length;
  const partly = all.filter(({ policies_decide: fields = [] }) => fields.length > 0).length;
  return [countOf('requested'), partly, countOf('policies_decide'), countOf('nothing_to_do')];
}

function outcomesByTeam(shown: readonly Restored[]): string {
  return teamTable(shown, {
    head: ['to go back', 'in part', 'left to policies', 'nothing to do'],
    ownerOf: ({ owner = '?' }) => owner,
    cellsOf: (members) => countsOf(members).map(String),
  });
}

/** A row for each group of computes that differ only in their id. */
function groupedRows(shown: readonly Restored[]): string[][] {
  const groups = groupAlike(shown, (one) => rowOf(one).slice(1));
  return groups.map(({ shared, members }) => [namesOf(members.map(({ compute_id }) => compute_id)), ...shared]);
}

export async function cancel(
  operator: Pick<Operator, 'restore'>,
  requests: readonly RestoreRequest[],
  flags: RestoreFlags,
): Promise<void> {
  const answers: Answer<'restore'>[] = [];
  for (const request of requests) answers.push(await answered(operator.restore(request)));
  const cancelled = {
    computes: answers.flatMap(({ computes }) => computes),
    count: sum(answers.map(({ count = 0 }) => count)),
    in_flight: answers.flatMap(({ in_flight = [] }) => in_flight),
  };
  const computes = cancelled.computes.filter(({ outcome }) => !flags.all || outcome === 'withdrawn');
  const withdrawn = computes.filter(({ outcome }) => outcome === 'withdrawn').map(({ compute_id }) => compute_id);
  const lines = [...withdrawn.map((id) => `${id} no longer goes back`), ...inFlightLines(cancelled)];
  const nothing = ['no request waits: nothing is withdrawn'];
  printAnswer(flags, { ...cancelled, computes }, cancelled.count === 0 ? nothing : lines);
}

/** The team that `--owner` selects. Beside COMPUTE, `--all` or `--from` it selects none, but is the former name of `--by`. */
function teamNamed(computes: readonly string[], { owner, all, from }: RestoreFlags): string | undefined {
  return computes.length === 0 && !all && from === undefined ? owner : undefined;
}

/** Limits the request for all computes to those of a team that are not yet as they were. Throws a UserError if the team has no computes. */
export async function requestsOfTeam(
  operator: Pick<Operator, 'restore'>,
  team: string,
  [request]: readonly RestoreRequest[],
): Promise<RestoreRequest[]> {
  if (!request) return [];
  const { computes } = await answered(operator.restore({ ...request, preview: true }));
  const concerned = computes.filter(({ outcome }) => outcome !== 'nothing_to_do');
  const unknown = concerned.filter(({ owner }) => owner === undefined).map(({ compute_id }) => printable(compute_id));
  if (unknown.length > 0)
    writeErrLine(`note: left out, as the owner is not known here: ${firstNames(unknown, 5)}; for them, give their ids`);
  if (!computes.some(({ owner }) => owner === team)) {
    const owners = [...new Set(computes.flatMap(({ owner = [] }) => owner))].toSorted().map(printable).join(', ');
    const known = owners === '' ? 'no owners are known here' : `owners are ${owners}`;
    throw new UserError(`--owner: nothing belongs to ${printable(team)}; ${known}`);
  }
  const ids = concerned.filter(({ owner }) => owner === team).map(({ compute_id }) => compute_id);
  return [...chunksOf(ids, AT_ONCE)].map((some) => ({ ...request, computes: some }));
}

async function requestsOf(computes: string[], flags: RestoreFlags): Promise<RestoreRequest[]> {
  const team = teamNamed(computes, flags);
  const { owner: _team, ...others } = flags;
  const actor = actorOf(team === undefined ? flags : others);
  const common = { owner: actor, now: flags.now ?? false, ...(flags.cancel && { cancel: true }) };
  if (flags.cancel && (flags.from !== undefined || flags.now)) {
    throw new UserError('--cancel withdraws requests: leave --from and --now out');
  }
  if (flags.from !== undefined) {
    if (flags.all)
      throw new UserError('--from restores all computes of the file, or those that are named: leave --all out');
    const baselines = await readBaselineFile(flags.from, computes);
    return [...chunksOf(baselines, AT_ONCE)].map((some) => {
      return { ...common, computes: some.map(({ compute_id }) => compute_id), baselines: some };
    });
  }
  if (team !== undefined) return [{ ...common, computes: 'all' }];
  if ((flags.all === true) === computes.length > 0)
    throw new UserError('give either ids of computes, --owner TEAM or --all');
  return [{ ...common, computes: flags.all ? 'all' : computes }];
}

/** Notes which computes of the file ebb has never seen, such as those deleted before it first ran. */
function noteMissing(requests: readonly RestoreRequest[], restored: readonly Restored[]): void {
  const knownIds = new Set(restored.map(({ compute_id }) => compute_id));
  const requestedIds = requests.flatMap(({ baselines = [] }) => baselines.map(({ compute_id }) => compute_id));
  const missing = requestedIds.filter((id) => !knownIds.has(id));
  if (missing.length === 0) return;
  const shown = firstNames(missing.map(printable), 5);
  writeErrLine(`note: ebb has not seen ${shown}: nothing is restored for them`);
}

const OUTCOMES = {
  requested: 'goes back',
  policies_decide: 'policies decide: hold it instead (ebb hold)',
  nothing_to_do: 'is as it was, or ebb never changed it',
  withdrawn: 'no longer goes back',
} as const;

function rowOf({ compute_id, baseline, outcome, set_by = {} }: Restored): string[] {
  const { min_cu, max_cu, suspend_timeout_seconds: timeout } = baseline;
  const size = min_cu === null || max_cu === null ? [] : [sizeText({ min_cu, max_cu })];
  const suspendAfter = timeout === null ? [] : [`suspend_after ${formatSuspendTimeout(timeout)}`];
  const names = { size: 'size', suspend_timeout: 'suspend_after' };
  const notRestored = (['size', 'suspend_timeout'] as const).flatMap((group) =>
    set_by[group] === undefined ? [] : [`${names[group]} is set by ${set_by[group]}`],
  );
  return [compute_id, [...size, ...suspendAfter].join(', '), [OUTCOMES[outcome], ...notRestored].join('; ')];
}

type ComputeBaseline = NonNullable<RestoreRequest['baselines']>[number];

/** The fields of the `baseline.json` of `ebb init` that a restore needs. */
const BaselineFile = z.object({
  computes: z.array(
    z.object({
      compute_id: z.string().min(1),
      min_cu: z.number(),
      max_cu: z.number(),
      suspend_timeout_seconds: z.number(),
    }),
  ),
});

/** The computes of a baseline file, or the named ones. Throws a UserError if the file can't be read or lacks a named compute. */
export async function readBaselineFile(path: string, named: readonly string[]): Promise<ComputeBaseline[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`--from ${path}: can't be read (${error.code}); give a file that ebb init has written`);
  });
  const read = BaselineFile.safeParse(parseJson(text));
  if (!read.success) {
    const [issue] = read.error.issues;
    const place = issue?.path.join('.') ?? '';
    const what = place === '' ? 'it is not a JSON object with computes' : `${place}: ${issue?.message}`;
    throw new UserError(`--from ${path}: ${what}; give a file that ebb init has written`);
  }
  const { computes } = read.data;
  const missing = named.find((id) => !computes.some(({ compute_id }) => compute_id === id));
  if (missing !== undefined) throw new UserError(`--from ${path}: has no compute ${missing}`);
  const wanted = named.length === 0 ? computes : computes.filter(({ compute_id }) => named.includes(compute_id));
  if (wanted.length === 0) throw new UserError(`--from ${path}: has no computes`);
  return wanted;
}
