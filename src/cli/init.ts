import { existsSync } from 'node:fs';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { fleetFileOf } from '../app/fleet/fleet-file.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import { settingsJson } from '../domain/evaluate/fleet-plan-json.ts';
import { ascending } from '../domain/sorted.ts';
import { isoInstant } from '../domain/time/units.ts';
import type { Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import { type CommonFlags, FLAGS } from './flags.ts';
import { awakeLines, awakeLongest, fleetTable, totalsLine, totalsOf } from './init/describe-fleet.ts';
import { baselineFile, type NewFile, refuseIfThere, settingsFile, starterPolicy, writeFiles } from './init/files.ts';
import { jsonText, writeOut } from './output.ts';
import type { ReadFleet } from './read-fleet.ts';
import { SCHEMAS, schemaPath, schemaText } from './schema.ts';

interface InitFlags extends CommonFlags {
  force?: boolean;
}

const SETTINGS_FILE = 'ebb.yaml';
const BASELINE_FILE = 'baseline.json';
const FLEET_FILE = 'fleet.json';
const POLICY_FOLDER = 'policies';

const EXAMPLES = `
Examples:
  $ EBB_API_KEY_FILE=key ebb init
  $ NEON_API_KEY=… ebb init                  this key is only used for reading; init reads only
  $ EBB_API_URL=http://127.0.0.1:8099/api/v2 EBB_API_KEY=try ebb init

It reads the fleet and writes ebb.yaml (mode: observe), baseline.json (the current values), fleet.json (for commands
with --fleet), schema/ for editors and, if there is no folder policies, a sample policy. No flag takes a key, because other users of the machine could see it.`;

export function initCommand(): Command {
  return new Command('init')
    .option('--force', 'overwrite ebb.yaml, baseline.json, fleet.json and the schemas')
    .option('--json', 'print what was found and written as JSON')
    .option(...FLAGS.apiUrl)
    .addHelpText('after', EXAMPLES)
    .action(init);
}

interface FirstReading {
  settings: Settings;
  projects: number;
  computes: readonly Compute[];
  files: readonly NewFile[];
  atMs: number;
}

async function init({ force = false, json = false, apiUrl }: InitFlags): Promise<void> {
  const cwd = process.cwd();
  if (!force)
    refuseIfThere(cwd, [SETTINGS_FILE, BASELINE_FILE, FLEET_FILE], (them) => `ebb init --force overwrites ${them}`);
  const reading = await readFirst({ cwd, apiUrl, force });
  await writeFiles(cwd, reading.files);
  writeOut(json ? `${jsonText(asJson(reading))}\n` : asText(reading));
}

async function readFirst(options: { cwd: string; apiUrl: string | undefined; force: boolean }): Promise<FirstReading> {
  const { cwd, apiUrl, force } = options;
  const [{ readSettings }, { readFleetOrFail }] = await Promise.all([
    import('../settings/settings.ts'),
    import('./read-fleet.ts'),
  ]);
  // An old ebb.yaml is about to be overwritten, so it is not read.
  const read = readSettings({ configFile: devNull, flags: { apiUrl } });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  const { settings } = read;
  const atMs = Date.now();
  const fleet = await readFleetOrFail({
    settings,
    acceptsMissing: false,
    live: true,
    needsPlans: true,
    readBranches: true,
  });
  const { projects, computes, plans = new Set() } = fleet;
  // `plan:` in ebb.yaml applies to all accounts, so it is written only if they have the same one.
  const plan = plans.size === 1 ? [...plans][0] : undefined;
  const files = await filesFor(fleet, { settings, plan, atMs, cwd, force });
  return { settings, projects: projects.length, computes: computes.toSorted(byName), files, atMs };
}

/** The settings file is the last one: if it exists, all the others do. */
async function filesFor(
  fleet: ReadFleet,
  options: { settings: Settings; plan: AccountPlan | undefined; atMs: number; cwd: string; force: boolean },
): Promise<NewFile[]> {
  const { settings, plan, atMs, cwd, force } = options;
  const folder = join(cwd, POLICY_FOLDER);
  const wantsPolicy = settings.policies.join() === POLICY_FOLDER && !existsSync(folder);
  return [
    { path: BASELINE_FILE, text: baselineFile({ apiUrl: settings.apiUrl, computes: fleet.computes, atMs }) },
    { path: FLEET_FILE, text: `${jsonText(fleetFileOf(fleet, atMs))}\n` },
    ...(wantsPolicy ? [{ path: join(POLICY_FOLDER, 'office-hours.yaml'), text: starterPolicy() }] : []),
    ...(await schemaFiles(cwd, force)),
    { path: SETTINGS_FILE, text: settingsFile(settings, { cwd, plan }) },
  ];
}

/** Existing schemas stay, unless `force` is given. */
async function schemaFiles(cwd: string, force: boolean): Promise<NewFile[]> {
  const missing = SCHEMAS.filter((name) => force || !existsSync(join(cwd, schemaPath(name))));
  return Promise.all(missing.map(async (name) => ({ path: schemaPath(name), text: await schemaText(name) })));
}

function byName(one: Compute, two: Compute): number {
  return one.projectName.localeCompare(two.projectName, 'en') || ascending(one.computeId, two.computeId);
}

function asText({ settings, projects, computes, files, atMs }: FirstReading): string {
  const awake = awakeLines(computes, atMs);
  const written = files.map(({ path }) => path).join(', ');
  const lines = [
    ...(computes.length > 0 ? [fleetTable(computes), ''] : []),
    `${totalsLine(totalsOf(computes, projects))}.`,
    ...(awake.length > 0 ? ['', 'Awake longest:', ...awake.map((line) => `  ${line}`)] : []),
    '',
    `Written: ${written}.`,
    `Nothing was changed at ${settings.apiUrl}, and nothing can be: in mode observe ebb only reads.`,
    ...(settings.mode === 'enforce' ? ['But EBB_MODE says enforce, and overrides ebb.yaml: unset it.'] : []),
    '',
    'Next:',
    ...nextLines(settings),
  ];
  return `${lines.join('\n')}\n`;
}

function nextLines({ policies: [folder = POLICY_FOLDER], listen }: Settings): string[] {
  const steps = [
    ['ebb report', 'what this period costs, and what would help'],
    ['ebb recommend --write recommended', 'all that could cost less, and policies for it'],
    [`cp recommended/*.yaml ${folder}`, 'those, or your own: docs/policies.md'],
    [`ebb validate --matches --fleet ${FLEET_FILE}`, 'are they right, and what do they select'],
    ['ebb plan', 'what enforcing would change now, and what that saves a month'],
    ['ebb run', `observe: http://${listen.host}:${listen.port} shows what would be done`],
  ];
  const width = Math.max(...steps.map(([command = '']) => command.length)) + 4;
  return steps.map(([command = '', what]) => `  ${command.padEnd(width)}${what}`);
}

function asJson({ settings, projects, computes, files, atMs }: FirstReading) {
  const totals = totalsOf(computes, projects);
  return {
    api_url: settings.apiUrl,
    mode: 'observe',
    read_at: isoInstant(atMs),
    files: files.map(({ path }) => path),
    totals: {
      projects: totals.projects,
      computes: totals.computes,
      active: totals.active,
      never_suspend: totals.neverSuspend,
      min_cu: totals.minCu,
      max_cu: totals.maxCu,
    },
    computes: computes.map(jsonCompute),
    awake_longest: awakeLongest(computes).map(({ computeId }) => computeId),
  };
}

function jsonCompute(compute: Compute) {
  const { startedAtMs } = compute;
  return {
    project_id: compute.projectId,
    project_name: compute.projectName,
    compute_id: compute.computeId,
    ...settingsJson(compute),
    state: compute.state,
    started_at: startedAtMs === undefined ? null : isoInstant(startedAtMs),
  };
}
