import { readSettings, type Settings } from '../settings.ts';
import { UserError } from './fail.ts';
import { writeErrLine } from './output.ts';

/** The settings, or an error that shows every problem with its place. Old names that are still accepted are a warning each. */
export function settingsOrFail(options: Parameters<typeof readSettings>[0]): Settings {
  const read = readSettings(options);
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  for (const warning of read.warnings) writeErrLine(`warning: ${warning}`);
  return read.settings;
}
