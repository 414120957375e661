import { readFileSync } from 'node:fs';
import { errorCode } from '../common/errors.ts';
import type { Result } from '../common/result.ts';
import { type Secret, secret } from './secret.ts';

/** The source of an API key. `key` is undefined for an unset variable. A file is read each time, so that keys can be rotated. */
export type ApiKeySource =
  | { from: 'variable'; variable: string; key: Secret | undefined }
  /** `where` is the setting that names the file, for messages. */
  | { from: 'file'; file: string; where: string };

/** Project-scoped keys: each file is named after its project and holds its key. */
export interface KeyFolder {
  from: 'folder';
  folder: string;
}

/** The purpose of a key. `NEON_API_KEY` is only used to read, so that a key that is set for other tools never changes a compute. */
export type KeyPurpose = 'read' | 'write';

const HEADER_SAFE = /^[\x21-\x7e]+$/;

/** The API key, or a problem with the remedy, which never contains the key. */
export function readApiKey(source: ApiKeySource | undefined, purpose: KeyPurpose): Result<Secret> {
  if (source === undefined) {
    const forReading = purpose === 'read' ? '; to read only, NEON_API_KEY is enough' : '';
    return {
      ok: false,
      problem: `no API key: set EBB_API_KEY, or EBB_API_KEY_FILE to a file that holds it${forReading}`,
    };
  }
  if (source.from === 'file') return readKeyFile(source);
  if (source.variable === 'NEON_API_KEY' && purpose === 'write') {
    const problem =
      'NEON_API_KEY is used for reading only, and this would write: set EBB_API_KEY or EBB_API_KEY_FILE, or stay in mode observe';
    return { ok: false, problem };
  }
  if (source.key !== undefined) return checked(source.key.reveal(), source.variable);
  return { ok: false, problem: `${source.variable}: is not set; put the API key there and nothing else` };
}

function readKeyFile({ file, where }: { file: string; where: string }): Result<Secret> {
  try {
    return checked(readFileSync(file, 'utf8').trim(), `${where}: ${file}`);
  } catch (error) {
    const code = errorCode(error);
    const problem = `${where}: the key file ${file} cannot be read (${code}); check the path and its permissions`;
    return { ok: false, problem };
  }
}

function checked(key: string, where: string): Result<Secret> {
  if (HEADER_SAFE.test(key)) return { ok: true, value: secret(key) };
  const problem = key === '' ? 'is empty' : 'holds blanks, line breaks or characters that no key has';
  return { ok: false, problem: `${where}: ${problem}; put the API key there and nothing else` };
}
