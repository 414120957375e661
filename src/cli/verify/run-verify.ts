import { readFile } from 'node:fs/promises';
import type { VerifyReport } from '../../app/verify/verify.ts';
import { restoreVerified, runVerify } from '../../compose/verify.ts';
import { orFail, UserError } from '../fail.ts';
import type { CommonFlags } from '../flags.ts';
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

export interface VerifyFlags extends CommonFlags {
  project: string;
  account?: string;
  databaseUrl?: string;
  restore?: boolean;
  format: keyof typeof FORMATS;
}

export async function runVerifyCommand(flags: VerifyFlags): Promise<void> {
  const { project: projectId, account } = flags;
  const settings = settingsOrFail(flags);
  if (flags.restore) {
    const hasRestored = orFail(await restoreVerified({ settings, projectId, account }));
    writeErrLine(hasRestored ? 'the compute has its earlier settings again' : 'there is nothing to put back');
    return;
  }
  const databaseUrl = await readDatabaseUrl(flags.databaseUrl);
  const stopping = new AbortController();
  void stopSignal().then(() => {
    writeErrLine('stopping: putting back what was there');
    stopping.abort(new Error('stopped'));
  });
  const { signal } = stopping;
  const report = orFail(
    await runVerify({ settings, projectId, account, databaseUrl, signal, onProgress: writeErrLine }),
  );
  writeOut(`${FORMATS[flags.format](report)}\n`);
  if (report.facts.every(({ observed }) => observed === undefined)) process.exitCode = 1;
}

/** Others on this machine can read the arguments of a process, so they only say where the secret is. */
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
      throw new UserError(`--database-url: ${name} cannot be read: check the path`);
    });
  throw new UserError('--database-url takes env:NAME or file:PATH, never the connection string itself');
}
