import type { CommandEntry } from './root.ts';

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
    summary: 'check policies and show the position of each problem',
    load: async () => (await import('./validate.ts')).validateCommand(),
  },
  {
    name: 'plan',
    summary: 'show what would be changed, and why',
    load: async () => (await import('./plan.ts')).planCommand(),
  },
  {
    name: 'apply',
    summary: 'apply the plan once',
    load: async () => (await import('./apply.ts')).applyCommand(),
  },
  {
    name: 'explain',
    summary: 'show step by step why a compute has, or should have, its size',
    load: async () => (await import('./explain.ts')).explainCommand(),
  },
  {
    name: 'forecast',
    summary: 'show which sizes computes will have, when, and the cost',
    load: async () => (await import('./forecast.ts')).forecastCommand(),
  },
  {
    name: 'diff',
    summary: 'compare two policy sets: which computes change, and when',
    load: async () => (await import('./diff.ts')).diffCommand(),
  },
  {
    name: 'backtest',
    summary: 'show what a headroom policy would have done with recorded connections',
    load: async () => (await import('./backtest.ts')).backtestCommand(),
  },
  {
    name: 'awake',
    summary: 'show what keeps computes awake, and what that costs',
    load: async () => (await import('./awake.ts')).awakeCommand(),
  },
  {
    name: 'cost',
    summary: 'show what compute has cost in a month, by owner or project',
    load: async () => (await import('./cost.ts')).costCommand(),
  },
  {
    name: 'usage',
    summary: 'write usage and operations to files that other commands read',
    load: async () => (await import('./usage.ts')).usageCommand(),
  },
  {
    name: 'recommend',
    summary: 'show what would cost less, with the policies for it',
    load: async () => (await import('./recommend.ts')).recommendCommand(),
  },
  {
    name: 'savings',
    summary: 'show what policies save, measured by a trial',
    load: async () => (await import('./savings.ts')).savingsCommand(),
  },
  {
    name: 'hold',
    summary: 'set size or timeout of a compute for a while, or keep it as it is',
    load: async () => (await import('./hold.ts')).holdCommand(),
  },
  {
    name: 'holds',
    summary: 'list the active holds',
    load: async () => (await import('./hold.ts')).holdsCommand(),
  },
  {
    name: 'release',
    summary: 'end holds, stopped fights and the respect for manual changes',
    load: async () => (await import('./release.ts')).releaseCommand(),
  },
  {
    name: 'freeze',
    summary: 'stop all writes to all computes, or to some, for a while',
    load: async () => (await import('./freeze.ts')).freezeCommand(),
  },
  {
    name: 'unfreeze',
    formerly: 'thaw',
    summary: 'end a freeze early',
    load: async () => (await import('./freeze.ts')).unfreezeCommand(),
  },
  {
    name: 'notify',
    summary: 'show, try, retry or drop notifications',
    load: async () => (await import('./notify.ts')).notifyCommand(),
  },
  {
    name: 'approve',
    summary: 'approve a staged policy set, so that it becomes current',
    load: async () => (await import('./approve.ts')).approveCommand(),
  },
  {
    name: 'restore',
    summary: 'set computes back to what they had before ebb',
    load: async () => (await import('./restore.ts')).restoreCommand(),
  },
  {
    name: 'status',
    summary: 'show mode, policies, what waits and why, holds and freezes',
    load: async () => (await import('./status.ts')).statusCommand(),
  },
  {
    name: 'history',
    summary: 'show the latest decisions, and why',
    load: async () => (await import('./history.ts')).historyCommand(),
  },
  {
    name: 'audit',
    summary: 'show who changed what, when, and why',
    load: async () => (await import('./audit.ts')).auditCommand(),
  },
  {
    name: 'store',
    summary: 'copy holds, freezes, baselines, usage, history and audit to a file, and back',
    load: async () => (await import('./store.ts')).storeCommand(),
  },
  {
    name: 'snapshot',
    summary: 'write the fleet to a file that other commands read instead of the API',
    load: async () => (await import('./snapshot.ts')).snapshotCommand(),
  },
  {
    name: 'terraform',
    summary: 'print which attributes Terraform should ignore, for each compute that policies change',
    load: async () => (await import('./terraform.ts')).terraformCommand(),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of policy files, or of ebb.yaml, for editors',
    load: async () => (await import('./schema.ts')).schemaCommand(),
  },
  {
    name: 'completion',
    summary: 'print a script that completes commands and flags in a shell',
    load: async () => (await import('./completion.ts')).completionCommand(COMMANDS),
  },
  {
    name: 'keys',
    summary: 'create API keys for a single project',
    load: async () => (await import('./keys.ts')).keysCommand(),
  },
  {
    name: 'emulator',
    summary: 'serve an emulated control API, to try policies on it',
    load: async () => (await import('./emulator.ts')).emulatorCommand(),
  },
  {
    name: 'demo',
    summary: 'simulate a working day of a small fleet, without a key or a service',
    load: async () => (await import('./demo.ts')).demoCommand(),
  },
];
