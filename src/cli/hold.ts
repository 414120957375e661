import { Command } from 'commander';
import type { Size } from '../domain/compute/compute.ts';
import {
  type AccessFlags,
  type ActingFlags,
  actingCommand,
  actorOf,
  answered,
  everyPage,
  withAccessFlags,
  withOperator,
} from './operator/access.ts';
import { parseDurationSeconds, parseSize, parseSuspendAfter } from './operator/parse-flags.ts';
import { describeHold, inFlightLines, printAnswer, printTable } from './operator/show.ts';

interface HoldFlags extends ActingFlags {
  /** Seconds. */
  for: number;
  reason: string;
  size?: Size;
  /** Seconds; −1 is never. */
  suspendAfter?: number;
  freeze?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb hold ep-cool-sea-12345678 --for 2h --reason 'import of the catalogue' --size 2-4
  $ ebb hold ep-cool-sea-12345678 --for 1d --reason 'demo' --suspend-after never
  $ ebb hold ep-cool-sea-12345678 --for 30m --reason 'incident 42' --freeze

A hold replaces the fields that it names until it expires or is released (ebb release); hard limits still apply. With
--freeze the compute stays as it is. If there are several holds, the newest applies. Write PROJECT/COMPUTE for a compute that ebb
has not discovered yet.`;

export function holdCommand(): Command {
  return actingCommand('hold')
    .argument('<COMPUTE>', 'id of the compute, PROJECT/COMPUTE, or a project that has only one')
    .requiredOption('--for <duration>', 'how long: 1s to 90d', parseDurationSeconds)
    .requiredOption('--reason <text>', 'why, for the others')
    .option('--size <size>', 'such as 2, or 2-4', parseSize)
    .option('--suspend-after <duration>', '1m to 7d, never, or default', parseSuspendAfter)
    .option('--freeze', 'keep the compute as it is')
    .addHelpText('after', EXAMPLES)
    .action(hold);
}

async function hold(compute: string, flags: HoldFlags): Promise<void> {
  const { for: forSeconds, reason, size, suspendAfter: suspendTimeoutSeconds, freeze } = flags;
  const fields = { ...(size && { size }), ...(suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds }) };
  const request = { compute, owner: actorOf(flags), reason, forSeconds, ...fields, ...(freeze && { freeze }) };
  await withOperator(flags, async ({ operator }) => {
    const set = await answered(operator.hold(request));
    const line = `${set.compute_id} is held until ${set.expires_at}: ${describeHold(set)} (${set.id})`;
    printAnswer(flags, set, [line, ...inFlightLines(set)]);
  });
}

const LIST_EXAMPLES = `
Examples:
  $ ebb holds
  $ ebb holds --json | jq '.holds[] | select(.owner == "ann")'`;

export function holdsCommand(): Command {
  return withAccessFlags(new Command('holds')).addHelpText('after', LIST_EXAMPLES).action(listHolds);
}

async function listHolds(flags: AccessFlags): Promise<void> {
  const holds = await withOperator(flags, ({ operator }) => everyPage((query) => operator.holds(query)));
  if (flags.json || holds.length === 0) return printAnswer(flags, { holds }, ['no holds']);
  const rows = holds.map((hold) => [
    hold.compute_id,
    describeHold(hold),
    hold.expires_at ?? 'never',
    hold.owner,
    hold.reason,
    hold.id,
  ]);
  printTable(['compute', 'held', 'until', 'owner', 'reason', 'id'], rows);
}
