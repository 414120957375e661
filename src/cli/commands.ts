import type { Command } from 'commander';

export interface CommandEntry {
  name: string;
  /** The command's own description, here so that `ebb --help` need not load it. */
  summary: string;
  load(): Promise<Command>;
}

/** Every command, in the order of `ebb --help`. Adding one means adding a file and one entry. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'read the fleet, and write settings that only observe',
    load: async () => (await import('./init.ts')).initCommand(),
  },
  {
    name: 'run',
    summary: 'evaluate policies and change computes, until stopped',
    load: async () => (await import('./run.ts')).runCommand(),
  },
  {
    name: 'validate',
    summary: 'check policies and say where they are wrong',
    load: async () => (await import('./validate.ts')).validateCommand(),
  },
  {
    name: 'snapshot',
    summary: 'write the fleet into a file that other commands read instead of the API',
    load: async () => (await import('./snapshot.ts')).snapshotCommand(),
  },
  {
    name: 'forecast',
    summary: 'show what computes will have, when, and what it may cost',
    load: async () => (await import('./forecast.ts')).forecastCommand(),
  },
  {
    name: 'diff',
    summary: 'show what a change of policies would change, for which computes, and when',
    load: async () => (await import('./diff.ts')).diffCommand(),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of policy files, for editors',
    load: async () => (await import('./schema.ts')).schemaCommand(),
  },
  {
    name: 'keys',
    summary: 'make API keys that open one project',
    load: async () => (await import('./keys.ts')).keysCommand(),
  },
  {
    name: 'emulator',
    summary: 'serve an emulated control API, to try policies against',
    load: async () => (await import('./emulator.ts')).emulatorCommand(),
  },
  {
    name: 'demo',
    summary: 'live through a working day of a small fleet, without a key or a service',
    load: async () => (await import('./demo.ts')).demoCommand(),
  },
];
