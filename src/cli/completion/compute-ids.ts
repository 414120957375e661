import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { knownComputes } from '../../compose/daemon-file.ts';
import { readSettings } from '../../settings/settings.ts';

/** Shells expand completions: an id with any other character could be a command. */
const HARMLESS = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * Ids of computes that are known without a key: from the daemon on this machine, else from the `baseline.json` that `ebb init` has
 * written. None where there is neither; never throws, since a Tab must print no message.
 */
export async function computeIds(cwd: string): Promise<string[]> {
  const read = readSettings({ cwd });
  const known = read.ok ? await knownComputes(read.settings).catch(() => undefined) : undefined;
  return [...new Set(known ?? idsInBaseline(cwd))].filter((id) => HARMLESS.test(id));
}

function idsInBaseline(cwd: string): string[] {
  try {
    const { computes } = JSON.parse(readFileSync(resolve(cwd, 'baseline.json'), 'utf8'));
    return computes.map((compute: { compute_id: unknown }) => String(compute.compute_id));
  } catch {
    return [];
  }
}
