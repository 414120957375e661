import { Command } from 'commander';
import { type LiveFlag, withLiveFlag } from './live-flag.ts';
import { jsonText, writeErrLine, writeOut, writeWhole } from './output.ts';
import type { ReadFleet } from './read-fleet.ts';

interface SnapshotFlags extends LiveFlag {
  out?: string;
  json?: boolean;
  partial?: boolean;
  config?: string;
  apiUrl?: string;
}

const EXAMPLES = `
Examples:
  $ ebb snapshot --out fleet.yaml          and then, without a key: ebb plan --fleet fleet.yaml
  $ ebb snapshot --out fleet.json          large fleets: JSON is read much faster
  $ ebb snapshot | grep -c branch_id
  $ ebb emulator --fleet fleet.yaml        try policies on a copy

It only reads, so NEON_API_KEY is enough. The file has names, sizes and times, and no secret: docs/fleet-files.md.
Exit code 0: the whole fleet is in it. 1: an error, or (with --partial) a part of the fleet is missing.`;

/** `ebb snapshot`: the fleet as a file, for commands that then need no key. */
export function snapshotCommand(): Command {
  return withLiveFlag(new Command('snapshot'))
    .description('write the fleet to a file that other commands read instead of the API')
    .option('--out <file>', 'write to this file instead of printing; JSON if the name ends in .json')
    .option('--json', 'write JSON instead of YAML')
    .option('--partial', 'write what can be read, even if an account or a project can not be read')
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)')
    .addHelpText('after', EXAMPLES)
    .action(snapshot);
}

async function snapshot({ out, json, partial = false, config, apiUrl, live }: SnapshotFlags): Promise<void> {
  const [{ settingsOrFail }, { readFleetOrFail }, { fleetFileOf }] = await Promise.all([
    import('./or-fail.ts'),
    import('./read-fleet.ts'),
    import('../app/fleet/fleet-file.ts'),
  ]);
  const settings = settingsOrFail({ configFile: config, flags: { apiUrl } });
  const takenAtMs = Date.now();
  const fleet = await readFleetOrFail(settings, { partial, live });
  const text = await textOf(fleetFileOf(fleet, takenAtMs), { json: json === true || out?.endsWith('.json') === true });
  if (out === undefined) writeOut(text);
  else await writeWhole(out, text);
  report(fleet, out);
}

async function textOf(fleet: object, { json }: { json: boolean }): Promise<string> {
  if (json) return `${jsonText(fleet)}\n`;
  return (await import('yaml')).stringify(fleet, { lineWidth: 0 });
}

/** On standard error, since the fleet itself may go to standard output. */
function report({ projects, computes, branchNamesRefused, missing, notes }: ReadFleet, out: string | undefined): void {
  const printNote = (line: string) => writeErrLine(line);
  for (const line of notes) printNote(`note: ${line}`);
  for (const line of missing) printNote(`not in the snapshot: ${line}`);
  if (branchNamesRefused.length > 0) {
    printNote(
      `note: the key may not list the branches of ${someOf(branchNamesRefused)}: their names are not in the snapshot`,
    );
  }
  if (out !== undefined) printNote(`${out}: ${computes.length} computes of ${projects.length} projects`);
  if (missing.length > 0) process.exitCode = 1;
}

function someOf(names: readonly string[]): string {
  const [first, ...others] = names;
  return others.length === 0 ? `${first}` : `${first} and ${others.length} more projects`;
}
