import { join } from 'node:path';
import { parseDatabase } from '../adapters/connections/session.ts';
import { createVerifyApi } from '../adapters/control-api/verify-api.ts';
import { createKeptSettingsFile } from '../adapters/store/local-files.ts';
import { BOUNDS, putBack, type VerifyReport, verifyAccount } from '../app/verify/verify.ts';
import type { Result } from '../common/result.ts';
import { chooseAccount } from '../settings/accounts.ts';
import type { Settings } from '../settings/settings.ts';
import { openCommandBudget } from './command-budget.ts';
import { apiAccounts, clientOptions, NO_METRICS, readKeysAtStart } from './control-api.ts';

interface VerifyOptions {
  settings: Settings;
  projectId: string;
  /** Required if there are several accounts. */
  account: string | undefined;
}

const ID = /^[a-z0-9-]{1,128}$/;

/** Measures facts about an account by experiments on a compute of the project. `databaseUrl` is a secret. */
export async function runVerify(
  options: VerifyOptions & {
    databaseUrl: string | undefined;
    signal: AbortSignal;
    onProgress: (step: string) => void;
  },
): Promise<Result<VerifyReport>> {
  const { projectId, databaseUrl, signal, onProgress } = options;
  const opened = await open(options);
  if (!opened.ok) return opened;
  const { api, keeper, account, clock } = opened.value;
  try {
    const database = databaseUrl === undefined ? undefined : await parseDatabase(databaseUrl);
    if (database?.ok === false) return database;
    const access = { api, ...(database && { database: database.value }), keeper };
    return await verifyAccount({ ...access, clock, signal, account: account.name, projectId, onProgress });
  } finally {
    await api.close();
  }
}

/** Restores the compute's settings if an earlier run has left them changed. The value is false if no run has. */
export async function restoreVerified(options: VerifyOptions): Promise<Result<boolean>> {
  const opened = await open(options);
  if (!opened.ok) return opened;
  const { api, keeper, clock } = opened.value;
  try {
    const kept = await keeper.read();
    if (!kept) return { ok: true, value: false };
    if (!(await putBack({ api, clock, kept })))
      return { ok: false, problem: 'the settings could not be put back: try again' };
    await keeper.remove();
    return { ok: true, value: true };
  } finally {
    await api.close();
  }
}

async function open({ settings, projectId, account: wanted }: VerifyOptions) {
  if (!ID.test(projectId)) return { ok: false as const, problem: '--project is not the id of a project' };
  const chosen = chooseAccount(settings.accounts, wanted, 'has the project');
  if (!chosen.ok) return chosen;
  const account = chosen.value;
  const keys = readKeysAtStart([account], 'write');
  if (!keys.ok) return keys;
  const clientSettings = clientOptions(settings);
  const { clock } = clientSettings;
  const { budget, close } = await openCommandBudget({ settings, clock });
  const bound = createVerifyApi({
    ...clientSettings,
    accounts: apiAccounts([account], { purpose: 'write', hide: () => {} }),
    metrics: NO_METRICS,
    budget,
    bounds: { projectId, ...BOUNDS },
  });
  const api = { ...bound, close: () => bound.close().finally(close) };
  const keeper = createKeptSettingsFile(join(settings.stateDir, `verify-${projectId}.json`));
  return { ok: true as const, value: { api, keeper, account, clock } };
}
