import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import type { DemoFlags } from './demo/run-demo.ts';

const EXAMPLES = `
Examples:
  $ ebb demo            a working day in about 45 seconds, then a table of the savings
  $ ebb demo --keep     the same, then keeps running, with /metrics

It needs no key, no service and no configuration, and leaves nothing behind. Time is simulated, slow around each
boundary and fast in between; everything else is what "ebb run" does: the same queue, client and HTTP, against
"ebb emulator" instead of the real service.`;

/** The policies that come with ebb. */
const POLICIES = fileURLToPath(new URL('../../policies', import.meta.url));

export function demoCommand(): Command {
  return new Command('demo')
    .option('--keep', 'keep running after the day, until stopped')
    .option('--policies <path>', 'other policies than those that come with ebb', POLICIES)
    .option('--listen <host:port>', 'where /metrics is (default: 127.0.0.1:9464, else a free port)')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import('./demo/run-demo.ts');
      await runDemo(flags, { withHeadroom: flags.policies === POLICIES });
    });
}
