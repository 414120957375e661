import { Command } from 'commander';
import { printable } from '../common/safe-text.ts';
import type { Operator } from '../compose/operator-access.ts';
import { formatSuspendTimeout } from '../domain/compute/settings-text.ts';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, ownerOf, withAccessFlags, withOperator } from './operator/access.ts';
import { printJson, printLines, printTable, sizeText } from './operator/show.ts';
import { writeErrLine } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb restore ep-cool-sea-12345678
  $ ebb restore --all                 after the policies were removed
  $ ebb restore --all --now           without waiting for computes to sleep
  $ ebb restore --from baseline.json  what ebb init has saved, such as after the store was lost

This goes back to what each compute had when ebb first saw it. A daemon in enforce mode applies it like any other
change, and gates apply: a disruptive change waits for sleep, for at most two hours. The request is valid for a day.
Fields that a policy sets are not restored, and the request for them is dropped: remove the policy first, or hold the
compute (ebb hold). With --from the values of the file replace the stored ones, also where ebb has changed nothing; ids
choose some of its computes.`;

type RestoreRequest = Parameters<Operator['restore']>[0];

type RestoreFlags = AccessFlags & { all?: boolean; from?: string; now?: boolean; owner?: string };

/** So many are sent at once. */
const AT_ONCE = 500;

/** `ebb restore`: computes as they were before ebb. */
export function restoreCommand(): Command {
  return withAccessFlags(new Command('restore'))
    .description('set computes back to what they had before ebb')
    .argument('[COMPUTE...]', 'ids of computes, or projects that have only one')
    .option('--all', 'every compute that ebb has changed')
    .option('--from <file>', 'back to the values of this file, as ebb init writes it')
    .option('--now', 'without waiting for sleep: clients are disconnected')
    .option('--owner <name>', 'who (default: the user)')
    .addHelpText('after', EXAMPLES)
    .action(restore);
}

async function restore(computes: string[], flags: RestoreFlags): Promise<void> {
  const requests = await requestsOf(computes, flags);
  await withOperator(flags, async ({ operator, via }) => {
    const restored: { computes: Restored[] } = { computes: [] };
    for (const request of requests) restored.computes.push(...(await answered(operator.restore(request))).computes);
    noteMissing(requests, restored.computes);
    if (flags.json) return printJson(restored);
    const shown = restored.computes.filter(({ outcome }) => !flags.all || outcome !== 'nothing_to_do');
    if (shown.length === 0) return printLines(['nothing to bring back']);
    printTable(['compute', 'baseline', ''], shown.map(rowOf));
    if (via === 'store') printLines(['the daemon on this store applies it in enforce mode, or ebb apply does']);
  });
}

async function requestsOf(computes: string[], flags: RestoreFlags): Promise<RestoreRequest[]> {
  const common = { owner: ownerOf(flags), now: flags.now ?? false };
  if (flags.from !== undefined) {
    if (flags.all)
      throw new UserError('--from restores all computes of the file, or those that are named: leave --all out');
    const { readBaselineFile } = await import('./operator/baseline-file.ts');
    const baselines = await readBaselineFile(flags.from, computes);
    return Array.from({ length: Math.ceil(baselines.length / AT_ONCE) }, (_, index) => {
      const some = baselines.slice(index * AT_ONCE, (index + 1) * AT_ONCE);
      return { ...common, computes: some.map(({ compute_id }) => compute_id), baselines: some };
    });
  }
  if ((flags.all === true) === computes.length > 0) throw new UserError('name computes, or give --all: one of them');
  return [{ ...common, computes: flags.all ? 'all' : computes }];
}

/** A file may be older than the fleet, and a store newer. */
function noteMissing(requests: readonly RestoreRequest[], restored: readonly Restored[]): void {
  const known = new Set(restored.map(({ compute_id }) => compute_id));
  const asked = requests.flatMap(({ baselines = [] }) => baselines.map(({ compute_id }) => compute_id));
  const missing = asked.filter((id) => !known.has(id));
  if (missing.length === 0) return;
  const shown = missing.slice(0, 5).map(printable).join(', ');
  const more = missing.length > 5 ? ` and ${missing.length - 5} more` : '';
  writeErrLine(`note: ebb has not seen ${shown}${more}: nothing is brought back there`);
}

type Restored = Extract<Awaited<ReturnType<Operator['restore']>>, { ok: true }>['value']['computes'][number];

const OUTCOMES = {
  requested: 'goes back',
  policies_decide: 'policies decide both fields: hold it instead (ebb hold)',
  nothing_to_do: 'is as it was, or ebb never changed it',
} as const;

function rowOf({ compute_id, baseline, outcome, policies_decide = [] }: Restored): string[] {
  const { min_cu, max_cu, suspend_timeout_seconds: timeout } = baseline;
  const size = min_cu === null || max_cu === null ? [] : [sizeText({ min_cu, max_cu })];
  const suspendAfter = timeout === null ? [] : [`suspend_after ${formatSuspendTimeout(timeout)}`];
  const left = policies_decide.map((group) => (group === 'size' ? 'size' : 'suspend_after')).join(', ');
  const shown = left === '' ? OUTCOMES[outcome] : `goes back, but policies decide ${left}`;
  return [compute_id, [...size, ...suspendAfter].join(', '), shown];
}
