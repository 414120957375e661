import { join } from 'node:path';
import { createOverrideFile, type OverrideFile } from '../adapters/store/override-file.ts';
import { createOverrides, type Overrides } from '../app/overrides.ts';
import type { Outages } from '../app/telemetry/outages.ts';
import type { Result } from '../common/result.ts';
import type { StoredOverrides } from '../ports/store.ts';
import type { Log, Telemetry } from '../ports/telemetry.ts';
import type { Settings } from '../settings/settings.ts';

const STATE_FOLDER = 'state folder';

/** The file of what people said: nothing is kept in it for an embedded store. */
export function openKept({ stateDir, group }: Settings, log: Log): OverrideFile {
  return createOverrideFile({ path: join(stateDir, `${group}.json`), log });
}

/**
 * Holds and freezes as known on this machine: where the store can be lost on its own, a file outlives it. An embedded store lies in the
 * same folder as that file would.
 */
export async function rememberOverrides(options: {
  settings: Settings;
  telemetry: Telemetry;
  outages: Outages;
}): Promise<Result<{ overrides: Overrides; hasRun: boolean }>> {
  const { settings, telemetry, outages } = options;
  if (settings.queue.kind === 'embedded') {
    return { ok: true, value: { overrides: createOverrides({ telemetry }), hasRun: false } };
  }
  const file = openKept(settings, telemetry.log);
  const read = await file.read();
  if (!read.ok) return read;

  async function keep(known: StoredOverrides): Promise<void> {
    try {
      await file.keep(known);
      outages.up(STATE_FOLDER);
    } catch (error) {
      const { code = 'error' } = error as NodeJS.ErrnoException;
      const remedy =
        'freezes and holds would be lost with the store: let state_dir name a folder that ebb may write to';
      outages.down(STATE_FOLDER, `${settings.stateDir} can't be written to (${code}); ${remedy}`);
    }
  }

  const overrides = createOverrides({ telemetry, remembered: read.value, keep });
  return { ok: true, value: { overrides, hasRun: read.value !== undefined } };
}
