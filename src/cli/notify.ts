import { Argument, Command } from 'commander';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, withAccessFlags, withOperator } from './operator/access.ts';
import { printAnswer, printLines, printTable } from './operator/show.ts';
import { writeJson } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb notify test ops               # sends a test message to the receiver ops, from here
  $ ebb notify list                   # what waits, and what could not be sent
  $ ebb notify retry ops              # sends the dead notifications of ops again
  $ ebb notify drop ops               # forgets them; with an id, one notification`;

type Action = 'list' | 'test' | 'retry' | 'drop';

export function notifyCommand(): Command {
  return withAccessFlags(new Command('notify'))
    .addArgument(new Argument('<ACTION>', 'what to do').choices(['list', 'test', 'retry', 'drop']))
    .argument('[RECEIVER|ID]', 'a receiver of ebb.yaml, or the id of a notification')
    .addHelpText('after', EXAMPLES)
    .action(notify);
}

async function notify(action: Action, target: string | undefined, flags: AccessFlags): Promise<void> {
  if (action === 'list') return list(flags);
  if (target === undefined) throw new UserError(`notify ${action}: name a receiver of ebb.yaml`);
  if (action === 'test') return test(target, flags);
  const { ids } = await withOperator(flags, ({ operator }) =>
    answered(operator.retryOrDropNotifications({ action, target })),
  );
  printAnswer(flags, { ids }, [`${ids.length} ${action === 'retry' ? 'will be sent again' : 'dropped'}`]);
}

async function list(flags: AccessFlags): Promise<void> {
  const found = await withOperator(flags, ({ operator }) => answered(operator.notifications()));
  if (flags.json) return writeJson(found);
  const { receivers, notifications, lost } = found;
  if (lost > 0) printLines([`${lost} were lost: more came than the store keeps`]);
  if (receivers.length === 0) return printLines(['no notifications wait']);
  const rows = notifications.map(({ receiver, state, at, tries, error, text, id }) => [
    receiver,
    state,
    at,
    String(tries),
    error ?? '',
    text,
    id,
  ]);
  printTable(['receiver', 'state', 'since', 'tries', 'last error', 'text', 'id'], rows);
}

/** Sends a test message from this machine, to show if the URL, the secret and the network work from here. */
async function test(name: string, flags: AccessFlags): Promise<void> {
  const [{ settingsOrFail }, { sendTest }] = await Promise.all([
    import('./or-fail.ts'),
    import('../compose/sources-and-receivers.ts'),
  ]);
  const sent = await sendTest(settingsOrFail(flags), name);
  if (!sent.ok) throw new UserError(`${name}: ${sent.problem}`);
  printAnswer(flags, { receiver: name, sent: true }, [`${name} took the test message`]);
}
