import { relative } from 'node:path';
import { stringify } from 'yaml';
import { SETTINGS } from '../../settings/declarations.ts';
import type { Settings } from '../../settings.ts';
import { schemaPath } from '../schema.ts';

/** The text of `ebb.yaml`: observe, and what this run was told by flags and variables. Never a key. */
export function settingsFile(settings: Settings, cwd: string): string {
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

${apiKey?.from === 'variable' ? `${keyComment(apiKey.variable)}\n\n` : ''}${stringify(values, { lineWidth: 0 })}`;
}

function keyComment(variable: string): string {
  if (variable !== 'NEON_API_KEY') return `# The API key comes from ${variable}. It has no place here.`;
  return `# The API key comes from NEON_API_KEY, which serves reading only: enforce needs EBB_API_KEY or EBB_API_KEY_FILE.`;
}

function pathFrom(cwd: string, file: string): string {
  const path = relative(cwd, file);
  return path.startsWith('..') ? file : path;
}
