import { Command } from 'commander';
import { stringify } from 'yaml';
import { firstNames } from '../common/names.ts';
import { DAY_MS } from '../domain/time/units.ts';
import { type CommonFlags, FLAGS } from './flags.ts';
import { jsonText, writeErrLine, writeNotes, writeOut, writeWhole } from './output.ts';
import type { ReadFleet } from './read-fleet.ts';

interface SnapshotFlags extends CommonFlags {
  out?: string;
  partial?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb snapshot --out fleet.yaml          and then, without a key: ebb plan --fleet fleet.yaml
  $ ebb snapshot --out fleet.json          large fleets: JSON is read much faster
  $ ebb snapshot | grep -c branch_id
  $ ebb emulator --fleet fleet.yaml        try policies on a copy

It only reads, so NEON_API_KEY is enough. The file has names, sizes and times, and no secret: docs/fleet-files.md.
Exit code 0: the whole fleet is in it. 1: an error, or (with --partial) a part of the fleet is missing.`;

export function snapshotCommand(): Command {
  return new Command('snapshot')
    .option(...FLAGS.live)
    .option('--out <file>', 'write to this file instead of printing; JSON if the name ends in .json')
    .option('--json', 'write JSON instead of YAML')
    .option('--partial', 'write what can be read, even if an account or a project cannot be read')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .addHelpText('after', EXAMPLES)
    .action(snapshot);
}

async function snapshot({ out, json, partial = false, live, ...flags }: SnapshotFlags): Promise<void> {
  const [{ settingsOrFail }, { readFleetOrFail }, { fleetFileOf }, { OPERATION_DAYS }] = await Promise.all([
    import('./or-fail.ts'),
    import('./read-fleet.ts'),
    import('../app/fleet/fleet-file.ts'),
    import('../app/usage/kept-operations.ts'),
  ]);
  const settings = settingsOrFail(flags);
  const takenAtMs = Date.now();
  // Stored operations are requested, since daemons store the names of branches with them.
  const operationsSinceMs = takenAtMs - OPERATION_DAYS * DAY_MS;
  const fleet = await readFleetOrFail({
    settings,
    acceptsMissing: partial,
    live,
    readBranches: true,
    operationsSinceMs,
  });
  const file = fleetFileOf(fleet, takenAtMs);
  const text = json || out?.endsWith('.json') ? `${jsonText(file)}\n` : stringify(file, { lineWidth: 0 });
  if (out === undefined) writeOut(text);
  else await writeWhole(out, text);
  report(fleet, out);
}

/** Writes to standard error, since the fleet itself may go to standard output. */
function report({ projects, computes, branchNamesRefused, missing, notes }: ReadFleet, out: string | undefined): void {
  writeNotes({ notes });
  for (const line of missing) writeErrLine(`not in the snapshot: ${line}`);
  if (branchNamesRefused.length > 0) {
    writeErrLine(
      `note: the key may not list the branches of ${firstNames(branchNamesRefused)}: their names are not in the snapshot`,
    );
  }
  if (out !== undefined) writeErrLine(`${out}: ${computes.length} computes of ${projects.length} projects`);
  if (missing.length > 0) process.exitCode = 1;
}
