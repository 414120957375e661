import { type FileHandle, open, unlink } from 'node:fs/promises';
import { Command } from 'commander';
import { errorCode } from '../common/errors.ts';
import { orFail, UserError } from './fail.ts';
import { type CommonFlags, FLAGS } from './flags.ts';
import { writeErrLine, writeJson, writeOut } from './output.ts';

interface CreateFlags extends CommonFlags {
  org: string;
  project: string;
  name: string;
  account?: string;
  out?: string;
}

const EXAMPLES = `
Examples:
  $ ebb keys create --org org-blue-sky-1 --project calm-sea-1 --name ebb --out keys/calm-sea-1
  $ ebb keys create --org org-blue-sky-1 --project calm-sea-1 --name ebb | secret-store put ebb

Needs a personal API key (EBB_API_KEY or EBB_API_KEY_FILE) of a member of the organization. The new key is for
that project only. The service shows it once; it is written to standard output, or to a new file that only you can read.`;

export function keysCommand(): Command {
  const create = new Command('create')
    .description('make a project-scoped API key')
    .requiredOption('--org <id>', 'organization that owns the project')
    .requiredOption('--project <id>', 'project that the key is for')
    .requiredOption('--name <name>', 'what the key is called in the console')
    .option('--account <name>', 'which of several accounts (accounts in ebb.yaml) makes it')
    .option('--out <file>', 'write the key there (mode 0600) instead of printing it; the file must not exist yet')
    .option('--json', 'print id, name, project and key as JSON')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .addHelpText('after', EXAMPLES)
    .action(createKey);
  return new Command('keys').addHelpText('after', EXAMPLES).addCommand(create);
}

async function createKey({ out, ...flags }: CreateFlags): Promise<void> {
  if (out === undefined) return print(await make(flags), flags);
  // The file is created first: a key that can't be written would be lost but stay valid.
  const file = await openNew(out);
  try {
    const { key, ...shown } = await make(flags);
    await save(file, out, key, shown.keyId);
    print({ ...shown, file: out }, flags);
  } catch (error) {
    await unlink(out).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

async function make({ org: organizationId, project: projectId, name, account, ...flags }: CreateFlags) {
  const [{ settingsOrFail }, { createProjectKey }] = await Promise.all([
    import('./or-fail.ts'),
    import('../compose/project-key.ts'),
  ]);
  const settings = settingsOrFail(flags);
  return orFail(await createProjectKey({ settings, account, organizationId, projectId, name }));
}

interface CreatedKey {
  keyId: number;
  name: string;
  projectId: string;
  createdAtMs: number;
  key?: string;
  file?: string;
}

function print({ keyId, name, projectId, createdAtMs, key, file }: CreatedKey, { json }: { json?: boolean }): void {
  if (json) {
    const made = { id: keyId, name, project_id: projectId, created_at: new Date(createdAtMs).toISOString() };
    writeJson({ ...made, key, file });
    return;
  }
  const where = file === undefined ? 'it is not shown again' : `it is in ${file}`;
  writeErrLine(`made key ${keyId} (${name}) for project ${projectId}; ${where}`);
  if (key !== undefined) writeOut(`${key}\n`);
}

async function openNew(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    const code = errorCode(error);
    const what = code === 'EEXIST' ? 'is there already: name a new file' : `cannot be made (${code}): check the path`;
    throw new UserError(`--out: ${path} ${what}; no key was made`);
  }
}

async function save(file: FileHandle, path: string, key: string, keyId: number): Promise<void> {
  try {
    await file.writeFile(`${key}\n`);
    await file.sync();
  } catch {
    throw new UserError(`key ${keyId} was made but ${path} cannot be written: revoke the key and make another`);
  }
}
