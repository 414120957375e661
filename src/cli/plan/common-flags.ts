import type { Command } from 'commander';
import { DateTime } from 'luxon';
import type { PolicySet } from '../../domain/policy/policy.ts';
import type { Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import type { LiveFlag } from '../live-flag.ts';
import { writeErrLine } from '../output.ts';

/** Flags of every command that decides as a daemon would. */
export interface DecidingFlags extends LiveFlag {
  config?: string;
  apiUrl?: string;
  queueUrl?: string;
  policies?: string;
  fleet?: string;
  at?: string;
  json?: boolean;
}

/** Adds the flags that say where settings, policies and the fleet come from. */
export function withSourceFlags(command: Command): Command {
  return command
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)')
    .option('--queue-url <url>', 'where daemons store what they know (EBB_QUEUE_URL; default: embedded:.ebb)')
    .option('--policies <paths>', 'files, folders, globs, separated by commas (EBB_POLICIES; default: policies)');
}

/** Adds the flags that name another fleet or another instant. */
export function withSubjectFlags(command: Command): Command {
  return command
    .option('--fleet <file>', 'a snapshot, YAML or JSON, instead of the live fleet: no key is needed')
    .option(
      '--at <iso>',
      'decide for this instant, e.g. 2026-03-02T08:00:00+01:00 (without offset: UTC; default: now)',
    );
}

/** The settings and the policies that the flags name, or an error that says what is wrong. */
export async function settingsAndPolicies(flags: DecidingFlags): Promise<{ settings: Settings; policies: PolicySet }> {
  const { config, apiUrl, queueUrl, policies } = flags;
  const [{ settingsOrFail }, { loadOrFail }] = await Promise.all([import('../or-fail.ts'), import('../or-fail.ts')]);
  const settings = settingsOrFail({ configFile: config, flags: { apiUrl, queueUrl, policies } });
  return { settings, policies: await loadOrFail(settings.policies, settings) };
}

/** The instant of `--at`, milliseconds since the epoch; undefined if it was not given. */
export function instantOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const instant = DateTime.fromISO(text, { zone: 'utc' });
  if (instant.isValid) return instant.toMillis();
  throw new UserError(`--at: ${text} is not an instant; write for example 2026-03-02T08:00:00+01:00`);
}

/** Prints unreadable parts and assumptions: never on standard output, where the plan is. */
export function printAsides({ missing, notes }: { missing: readonly string[]; notes: readonly string[] }): void {
  for (const note of notes) writeErrLine(`note: ${note}`);
  for (const line of missing) writeErrLine(`not in the plan: ${line}`);
}
