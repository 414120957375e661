/** The command alone, as a process: what main.ts does with it, and no more. */
import { Command } from 'commander';
import { emulatorCommand } from '../../src/cli/emulator.ts';

await new Command('ebb').addCommand(emulatorCommand()).parseAsync();
