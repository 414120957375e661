import { setFlagsFromString } from 'node:v8';
import { Command, Option } from 'commander';
import { UserError } from './fail.ts';
import { type CommonFlags, FLAGS } from './flags.ts';
import { writeErrLine } from './output.ts';
import { readVersion } from './root.ts';
import { hangUps, stopSignal } from './signals.ts';

interface RunFlags extends Pick<CommonFlags, 'config' | 'apiUrl' | 'queueUrl' | 'policies'> {
  mode?: string;
  listen?: string;
  insecure?: boolean;
  accept?: string;
}

const EXAMPLES = `
Examples:
  $ EBB_API_KEY_FILE=key ebb run                    observe: nothing is written
  $ EBB_API_KEY_FILE=key ebb run --mode enforce     computes are changed
  $ EBB_QUEUE_URL=redis://127.0.0.1:6379 EBB_API_KEY_FILE=key ebb run

It runs until SIGINT or SIGTERM. Changed policies and most changed settings are reloaded automatically, and
immediately on SIGHUP. The status page, /metrics, /healthz and /readyz are on http://127.0.0.1:9464 (--listen).
Nothing is written without --mode enforce (or EBB_MODE=enforce, or "mode: enforce" in ebb.yaml).`;

export function runCommand(): Command {
  return new Command('run')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .addOption(
      new Option('--mode <mode>', 'observe writes nothing (EBB_MODE; default: observe)').choices([
        'observe',
        'enforce',
      ]),
    )
    .option('--queue-url <url>', 'embedded:DIR, redis://…, postgres://… (EBB_QUEUE_URL; default: embedded:.ebb)')
    .option(...FLAGS.policies)
    .option('--listen <host:port>', 'where /metrics is (EBB_LISTEN; default: 127.0.0.1:9464)')
    .option('--accept <hash>', 'approve this policy set, however many computes it disconnects at once')
    .option('--insecure', 'serve beyond this machine without a token')
    .addHelpText('after', EXAMPLES)
    .action((flags: RunFlags) => run(flags));
}

/** After this time the process ends, even if something is still open. Real milliseconds. */
const EXIT_GRACE_MS = 500;

async function run({ config, accept, ...flags }: RunFlags): Promise<void> {
  keepHeapLean();
  const stopped = stopSignal();
  const onHangUp = hangUps();
  const stopping = new AbortController();
  void stopped.then((signal) => stopping.abort(new Error(`stopped by ${signal}`)));
  const [{ readSettings }, { loadToRun }, { runDaemon }, { rulesFromFiles }, { configFilePath }] = await Promise.all([
    import('../settings/settings.ts'),
    import('./or-fail.ts'),
    import('../compose/run-daemon.ts'),
    import('../compose/rules-from-files.ts'),
    import('../settings/config-file.ts'),
  ]);
  const readAgain = () => readSettings({ flags, ...(config !== undefined && { configFile: config }) });
  const read = readAgain();
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  const { settings } = read;
  for (const warning of read.warnings) writeErrLine(`warning: ${warning}`);
  const policies = await loadToRun(settings.policies, settings);
  const configFile = configFilePath({ cwd: process.cwd(), named: config });
  const source = rulesFromFiles({ readSettings: readAgain, settings, configFile });
  const { signal } = stopping;
  const started = await runDaemon({ settings, policies, source, accept, version: readVersion(), signal });
  if (!started.ok && !signal.aborted) throw new UserError(started.problem);
  if (started.ok) onHangUp(() => void started.value.reload());
  if ((await stopped) === 'SIGINT') process.exitCode = 130;
  if (started.ok) await started.value.stop();
  // An interrupted start, or a daemon that could not close everything in time, may have left something open.
  setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
}

/** The heap may grow by this percentage beyond what is in use before a full collection. V8 allows up to 300. */
const GROWTH_PERCENT = 40;

/**
 * A daemon holds a fleet for months and makes garbage in bursts. By default V8 waits until the heap is a few times the live data, and
 * returns little memory to the machine; bench/README.md has the figures.
 */
function keepHeapLean(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
