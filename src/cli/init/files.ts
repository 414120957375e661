import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { stringify } from 'yaml';
import { errorCode } from '../../common/errors.ts';
import { replaceFile } from '../../common/replace-file.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import { settingsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { SETTINGS } from '../../settings/declarations.ts';
import type { Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import { schemaPath } from '../schema.ts';

/** A file to write, relative to the working folder. */
export interface NewFile {
  path: string;
  text: string;
}

/** Throws a UserError if one of the files exists. `remedyOf` is called with the pronoun for these files, `it` or `them`. */
export function refuseIfThere(cwd: string, paths: readonly string[], remedyOf: (them: string) => string): void {
  const there = paths.filter((path) => existsSync(resolve(cwd, path)));
  if (there.length === 0) return;
  const isOne = there.length === 1;
  const remedy = remedyOf(isOne ? 'it' : 'them');
  throw new UserError(`${there.join(' and ')} ${isOne ? 'is' : 'are'} there already; nothing was done, ${remedy}`);
}

/** Writes the files in their order, each whole or not at all. */
export async function writeFiles(cwd: string, files: readonly NewFile[]): Promise<void> {
  for (const { path, text } of files) {
    const file = resolve(cwd, path);
    try {
      await mkdir(dirname(file), { recursive: true });
      await replaceFile(file, text);
    } catch (error) {
      throw new UserError(`${path} cannot be written (${errorCode(error)}): check the folder and its permissions`);
    }
  }
}

/** The text of baseline.json: the present settings of every compute, with the field names of the control API, so that they can be restored. */
export function baselineFile(options: { apiUrl: string; computes: readonly Compute[]; atMs: number }): string {
  const { apiUrl, computes, atMs } = options;
  const baseline = {
    taken_at: isoInstant(atMs),
    api_url: apiUrl,
    computes: computes.map((compute) => ({
      account: compute.account,
      project_id: compute.projectId,
      project_name: compute.projectName,
      compute_id: compute.computeId,
      ...settingsJson(compute),
    })),
  };
  return `${JSON.stringify(baseline, null, 2)}\n`;
}

/** The text of ebb.yaml: observe mode, the flags and variables of this run, and the plan if it is known; never a key. */
export function settingsFile(
  settings: Settings,
  { cwd, plan }: { cwd: string; plan?: AccountPlan | undefined },
): string {
  const { apiUrl, accounts, policies } = settings;
  const apiKey = accounts[0]?.apiKey;
  const values = {
    ...(apiUrl !== SETTINGS.api_url.fallback && { api_url: apiUrl }),
    ...(apiKey?.from === 'file' && { api_key_file: pathFrom(cwd, apiKey.file) }),
    policies: policies.length === 1 ? policies[0] : policies,
  };
  return `# yaml-language-server: $schema=${schemaPath('settings')}
# Settings of ebb, written by ebb init. Variables (EBB_...) override them, flags override both: docs/settings.md.

# observe: nothing is written, logs and metrics say what would be. enforce: computes are changed.
mode: observe

# What a CU-hour costs: free, launch or scale. ${plan ? 'This is what the control API says.' : 'Without it most commands know CU-hours only.'}
${plan ? `plan: ${plan}` : '# plan: scale'}

${apiKey?.from === 'variable' ? `${keyComment(apiKey.variable)}\n\n` : ''}${stringify(values, { lineWidth: 0 })}`;
}

function keyComment(variable: string): string {
  if (variable !== 'NEON_API_KEY') return `# The API key comes from ${variable}. It has no place here.`;
  return `# The API key comes from NEON_API_KEY, which is for reading only: enforce needs EBB_API_KEY or EBB_API_KEY_FILE.`;
}

function pathFrom(cwd: string, file: string): string {
  const path = relative(cwd, file);
  return path.startsWith('..') ? file : path;
}

/** A first policy file, for a folder beside the schemas. Its policy is disabled: a first run must change nothing. */
export function starterPolicy(): string {
  return `# yaml-language-server: $schema=../${schemaPath('policies')}
#
# A policy to start from. It does nothing yet: say which projects it is for and what they need, take away the line
# "enabled: false", and look at what would happen with: ebb validate, ebb plan, ebb forecast
version: 1
timezone: UTC # of all times in this file, e.g. Europe/Berlin

policies:
  - name: office-hours
    kind: schedule
    enabled: false
    select:
      projects: ["my-project-*"] # names or ids; "!name" would exclude one
    windows:
      - at: Mon-Fri 08:00-18:00
        size: 1-2 # may scale between 1 and 2 compute units (CU)
        suspend_after: 30m # sleeps after half an hour without activity
    otherwise: # evenings, nights, weekends
      size: 0.25-1
      suspend_after: 5m
`;
}
