import type { CommandEntry } from './root.ts';

/** Every command under its heading, in the order of `ebb help all`. A new command needs a file and an entry here. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, Omit<CommandEntry, 'group' | 'name'>>>>> = {
  'Try and check': {
    demo: {
      summary: 'simulate a working day of a small fleet, without a key or a service',
      load: async () => (await import('./demo.ts')).demoCommand(),
    },
    init: {
      summary: 'read the fleet, and write settings that only observe',
      load: async () => (await import('./init.ts')).initCommand(),
    },
    validate: {
      summary: 'check policies and show the position of each problem',
      load: async () => (await import('./validate.ts')).validateCommand(),
    },
    plan: {
      summary: 'show what would be changed, and why',
      load: async () => (await import('./plan.ts')).planCommand(),
    },
    forecast: {
      summary: 'show which sizes computes will have, when, and the cost',
      load: async () => (await import('./forecast.ts')).forecastCommand(),
    },
    diff: {
      onlyInHelpAll: true,
      summary: 'compare two policy sets: which computes change, and when',
      load: async () => (await import('./diff.ts')).diffCommand(),
    },
    backtest: {
      onlyInHelpAll: true,
      summary: 'show what a headroom policy would have done with recorded connections',
      load: async () => (await import('./backtest.ts')).backtestCommand(),
    },
    guard: {
      onlyInHelpAll: true,
      summary: 'ask a guard about computes now, or replay the past',
      load: async () => (await import('./guard.ts')).guardCommand(),
    },
    verify: {
      onlyInHelpAll: true,
      summary: 'measure on an empty project how the control API behaves',
      load: async () => (await import('./verify.ts')).verifyCommand(),
    },
    emulator: {
      onlyInHelpAll: true,
      summary: 'serve an emulated control API, to try policies on it',
      load: async () => (await import('./emulator.ts')).emulatorCommand(),
    },
    snapshot: {
      onlyInHelpAll: true,
      summary: 'write the fleet to a file that other commands read instead of the API',
      load: async () => (await import('./snapshot.ts')).snapshotCommand(),
    },
    schema: {
      onlyInHelpAll: true,
      summary: 'print the JSON Schema of policy files, or of ebb.yaml, for editors',
      load: async () => (await import('./schema.ts')).schemaCommand(),
    },
    completion: {
      onlyInHelpAll: true,
      summary: 'print a script that completes commands and flags in a shell',
      load: async () => (await import('./completion.ts')).completionCommand(COMMANDS),
    },
  },
  Run: {
    run: {
      summary: 'evaluate policies and change computes, until stopped',
      load: async () => (await import('./run.ts')).runCommand(),
    },
    apply: {
      summary: 'apply the plan once',
      load: async () => (await import('./apply.ts')).applyCommand(),
    },
    notify: {
      onlyInHelpAll: true,
      summary: 'show, try, retry or drop notifications',
      load: async () => (await import('./notify.ts')).notifyCommand(),
    },
    store: {
      onlyInHelpAll: true,
      summary: 'copy holds, freezes, baselines, usage, history and audit to a file, and back',
      load: async () => (await import('./store.ts')).storeCommand(),
    },
    keys: {
      onlyInHelpAll: true,
      summary: 'create API keys for a single project',
      load: async () => (await import('./keys.ts')).keysCommand(),
    },
    terraform: {
      onlyInHelpAll: true,
      summary: 'print which attributes Terraform should ignore, for each compute that policies change',
      load: async () => (await import('./terraform.ts')).terraformCommand(),
    },
  },
  Ask: {
    status: {
      summary: 'show mode, policies, what waits and why, holds and freezes',
      load: async () => (await import('./status.ts')).statusCommand(),
    },
    explain: {
      summary: 'show step by step why a compute has, or should have, its size',
      load: async () => (await import('./explain.ts')).explainCommand(),
    },
    cost: {
      summary: 'show what compute has cost in a month, by owner or project',
      load: async () => (await import('./cost.ts')).costCommand(),
    },
    recommend: {
      summary: 'show what would cost less, with the policies for it',
      load: async () => (await import('./recommend.ts')).recommendCommand(),
    },
    report: {
      summary: 'show what this billing period used, when it runs out, and what would help',
      load: async () => (await import('./report.ts')).reportCommand(),
    },
    history: {
      onlyInHelpAll: true,
      summary: 'show the latest decisions, and why',
      load: async () => (await import('./history.ts')).historyCommand(),
    },
    awake: {
      onlyInHelpAll: true,
      summary: 'show what keeps computes awake, and what that costs',
      load: async () => (await import('./awake.ts')).awakeCommand(),
    },
    savings: {
      onlyInHelpAll: true,
      summary: 'show what policies save, measured by a trial',
      load: async () => (await import('./savings.ts')).savingsCommand(),
    },
    usage: {
      onlyInHelpAll: true,
      summary: 'write usage and operations to files that other commands read',
      load: async () => (await import('./usage.ts')).usageCommand(),
    },
    holds: {
      onlyInHelpAll: true,
      summary: 'list the active holds',
      load: async () => (await import('./hold.ts')).holdsCommand(),
    },
    audit: {
      onlyInHelpAll: true,
      summary: 'show who changed what, when, and why',
      load: async () => (await import('./audit.ts')).auditCommand(),
    },
  },
  Intervene: {
    hold: {
      summary: 'set size or timeout of a compute for a while, or keep it as it is',
      load: async () => (await import('./hold.ts')).holdCommand(),
    },
    release: {
      summary: 'end holds, stopped fights and the respect for manual changes',
      load: async () => (await import('./release.ts')).releaseCommand(),
    },
    freeze: {
      summary: 'stop all writes to all computes, or to some, for a while',
      load: async () => (await import('./freeze.ts')).freezeCommand(),
    },
    unfreeze: {
      formerly: 'thaw',
      summary: 'end a freeze early',
      load: async () => (await import('./freeze.ts')).unfreezeCommand(),
    },
    restore: {
      onlyInHelpAll: true,
      summary: 'set computes back to their baselines',
      load: async () => (await import('./restore.ts')).restoreCommand(),
    },
    approve: {
      onlyInHelpAll: true,
      summary: 'approve a staged policy set, so that it becomes current',
      load: async () => (await import('./approve.ts')).approveCommand(),
    },
  },
};

export const COMMANDS: readonly CommandEntry[] = Object.entries(GROUPS).flatMap(([group, entries]) =>
  Object.entries(entries).map(([name, entry]) => ({
    ...entry,
    name,
    group,
    load: async () => (await entry.load()).description(entry.summary),
  })),
);
