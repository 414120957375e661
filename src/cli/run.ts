import { Command, Option } from 'commander';
import { UserError } from './fail.ts';
import { stopSignal } from './stop-signal.ts';
import { readVersion } from './version.ts';

interface RunFlags {
  config?: string;
  apiUrl?: string;
  mode?: string;
  queueUrl?: string;
  policies?: string;
  listen?: string;
  insecure?: boolean;
}

const EXAMPLES = `
Examples:
  $ EBB_API_KEY_FILE=key ebb run                    observe: nothing is written
  $ EBB_API_KEY_FILE=key ebb run --mode enforce     computes are changed
  $ EBB_QUEUE_URL=redis://127.0.0.1:6379 EBB_API_KEY_FILE=key ebb run

It runs until SIGINT or SIGTERM. /metrics, /healthz and /readyz are on http://127.0.0.1:9464 (--listen).
Nothing is written without --mode enforce (or EBB_MODE=enforce, or "mode: enforce" in ebb.yaml).`;

export function runCommand(): Command {
  return new Command('run')
    .description('evaluate policies and change computes, until stopped')
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)')
    .addOption(
      new Option('--mode <mode>', 'observe writes nothing (EBB_MODE; default: observe)').choices([
        'observe',
        'enforce',
      ]),
    )
    .option('--queue-url <url>', 'embedded:DIR, redis://…, postgres://… (EBB_QUEUE_URL; default: embedded:.ebb)')
    .option('--policies <paths>', 'files, folders, globs, separated by commas (EBB_POLICIES; default: policies)')
    .option('--listen <host:port>', 'where /metrics is (EBB_LISTEN; default: 127.0.0.1:9464)')
    .option('--insecure', 'serve beyond this machine without a token')
    .addHelpText('after', EXAMPLES)
    .action((flags: RunFlags) => run(flags));
}

async function run({ config, ...flags }: RunFlags): Promise<void> {
  const [{ readSettings }, { loadOrFail }, { runDaemon }] = await Promise.all([
    import('../settings.ts'),
    import('./load-or-fail.ts'),
    import('../compose.ts'),
  ]);
  const read = readSettings({ flags, ...(config !== undefined && { configFile: config }) });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  const policies = await loadOrFail(read.settings.policies);
  const stopped = stopSignal();
  const started = await runDaemon({ settings: read.settings, policies, version: readVersion() });
  if (!started.ok) throw new UserError(started.problem);
  const signal = await stopped;
  await started.daemon.stop();
  if (signal === 'SIGINT') process.exitCode = 130;
}
