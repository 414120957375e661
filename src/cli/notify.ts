import { Argument, Command } from 'commander';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, withAccessFlags, withOperator } from './operator/access.ts';
import { printJson, printLines, printTable } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb notify test ops               # sends a test message to the receiver ops, from here
  $ ebb notify list                   # what waits, and what could not be sent
  $ ebb notify retry ops              # sends the dead notifications of ops again
  $ ebb notify drop ops               # forgets them; with an id, one notification`;

type Action = 'list' | 'test' | 'retry' | 'drop';

/** `ebb notify`: lists, retries and drops notifications, and sends a test message. */
export function notifyCommand(): Command {
  return withAccessFlags(new Command('notify'))
    .description('show, try, retry or drop notifications')
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
  if (flags.json) printJson({ ids });
  else printLines([`${ids.length} ${action === 'retry' ? 'will be sent again' : 'dropped'}`]);
}

async function list(flags: AccessFlags): Promise<void> {
  const found = await withOperator(flags, ({ operator }) => answered(operator.notifications()));
  if (flags.json) return printJson(found);
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

/** Sends from this machine, so it shows if URL, secret and network are right here. */
async function test(name: string, { config, queueUrl, json }: AccessFlags): Promise<void> {
  const [{ settingsOrFail }, { sendTest }] = await Promise.all([
    import('./or-fail.ts'),
    import('../compose/sources-and-receivers.ts'),
  ]);
  const settings = settingsOrFail({ configFile: config, flags: { queueUrl } });
  const sent = await sendTest(settings, name);
  if (!sent.ok) throw new UserError(`${name}: ${sent.problem}`);
  if (json) printJson({ receiver: name, sent: true });
  else printLines([`${name} took the test message`]);
}
