import { readFile } from 'node:fs/promises';
import type { VerifyReport } from '../../app/verify/verify.ts';
import { restoreVerified, runVerify } from '../../compose/verify.ts';
import { UserError } from '../fail.ts';
import { settingsOrFail } from '../or-fail.ts';
import { jsonText, writeErrLine, writeOut } from '../output.ts';
import { stopSignal } from '../signals.ts';
import { verifiedYaml, verifyJson, verifyMarkdown, verifyText } from './text.ts';

const FORMATS = {
  text: verifyText,
  json: (report: VerifyReport) => jsonText(verifyJson(report)),
  markdown: verifyMarkdown,
  yaml: verifiedYaml,
};

export interface VerifyFlags {
  project: string;
  account?: string;
  databaseUrl?: string;
  restore?: boolean;
  format: keyof typeof FORMATS;
  json?: boolean;
  config?: string;
  apiUrl?: string;
}

export async function runVerifyCommand(flags: VerifyFlags): Promise<void> {
  const { project: projectId, account, config: configFile, apiUrl } = flags;
  const settings = settingsOrFail({ configFile, flags: { apiUrl } });
  if (flags.restore) return restore({ settings, projectId, account });
  const databaseUrl = await readDatabaseUrl(flags.databaseUrl);
  const stopping = new AbortController();
  void stopSignal().then(() => {
    writeErrLine('stopping: putting back what was there');
    stopping.abort(new Error('stopped'));
  });
  const onProgress = (what: string) => writeErrLine(what);
  const result = await runVerify({ settings, projectId, account, databaseUrl, signal: stopping.signal, onProgress });
  if (!result.ok) throw new UserError(result.problem);
  const report = result.value;
  writeOut(`${FORMATS[flags.json ? 'json' : flags.format](report)}\n`);
  if (report.facts.every(({ observed }) => observed === undefined)) process.exitCode = 1;
}

async function restore(options: Parameters<typeof restoreVerified>[0]): Promise<void> {
  const restored = await restoreVerified(options);
  if (!restored.ok) throw new UserError(restored.problem);
  writeErrLine(restored.value ? 'the compute has again what it had' : 'there is nothing to put back');
}

/** Arguments of a process can be read by others on its machine, so that they only say where the secret is. */
async function readDatabaseUrl(where: string | undefined): Promise<string | undefined> {
  if (where === undefined) return undefined;
  const [, kind, name = ''] = /^(env|file):(.+)$/.exec(where) ?? [];
  if (kind === 'env') {
    // biome-ignore lint/style/noProcessEnv: the variable is named by the person, and no setting.
    const value = process.env[name];
    if (!value) throw new UserError(`--database-url: the variable ${name} is not set`);
    return value;
  }
  if (kind === 'file')
    return readFile(name, 'utf8').catch(() => {
      throw new UserError(`--database-url: ${name} can not be read: check the path`);
    });
  throw new UserError('--database-url takes env:NAME or file:PATH, never the connection string itself');
}
