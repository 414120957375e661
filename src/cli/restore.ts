import { Command } from 'commander';
import { formatSuspendTimeout } from '../domain/compute/settings-text.ts';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, ownerOf, withAccessFlags, withOperator } from './operator/access.ts';
import { printJson, printLines, printTable, sizeText } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb restore ep-cool-sea-12345678
  $ ebb restore --all                 after the policies were removed
  $ ebb restore --all --now           without waiting for computes to sleep

This goes back to what each compute had when ebb first saw it. A daemon in enforce mode applies it like any other
change, and gates apply: a disruptive change waits for sleep, for at most two hours. Fields that a policy sets stay
with the policy: remove it first, or hold the compute (ebb hold). The request is valid for a day.`;

type RestoreFlags = AccessFlags & { all?: boolean; now?: boolean; owner?: string };

/** `ebb restore`: computes as they were before ebb. */
export function restoreCommand(): Command {
  return withAccessFlags(new Command('restore'))
    .description('set computes back to what they had before ebb')
    .argument('[COMPUTE...]', 'ids of computes')
    .option('--all', 'every compute that ebb has changed')
    .option('--now', 'without waiting for sleep: clients are disconnected')
    .option('--owner <name>', 'who (default: the user)')
    .addHelpText('after', EXAMPLES)
    .action(restore);
}

async function restore(computes: string[], flags: RestoreFlags): Promise<void> {
  if ((flags.all === true) === computes.length > 0) throw new UserError('name computes, or give --all: one of them');
  const request = { computes: flags.all ? ('all' as const) : computes, owner: ownerOf(flags), now: flags.now ?? false };
  await withOperator(flags, async ({ operator, via }) => {
    const restored = await answered(operator.restore(request));
    if (flags.json) return printJson(restored);
    const shown = restored.computes.filter(({ outcome }) => !flags.all || outcome !== 'nothing_to_do');
    if (shown.length === 0) return printLines(['nothing to bring back']);
    printTable(['compute', 'baseline', ''], shown.map(rowOf));
    if (via === 'store') printLines(['the daemon on this store applies it in enforce mode, or ebb apply does']);
  });
}

type Restored = Extract<
  Awaited<ReturnType<Parameters<Parameters<typeof withOperator>[1]>[0]['operator']['restore']>>,
  { ok: true }
>['value']['computes'][number];

const OUTCOMES = {
  requested: 'goes back',
  policies_decide: 'policies decide both fields: hold it instead (ebb hold)',
  nothing_to_do: 'is as it was, or ebb never changed it',
} as const;

function rowOf({ compute_id, baseline, outcome }: Restored): string[] {
  const { min_cu, max_cu, suspend_timeout_seconds: timeout } = baseline;
  const size = min_cu === null || max_cu === null ? [] : [sizeText({ min_cu, max_cu })];
  const suspendAfter = timeout === null ? [] : [`suspend_after ${formatSuspendTimeout(timeout)}`];
  return [compute_id, [...size, ...suspendAfter].join(', '), OUTCOMES[outcome]];
}
