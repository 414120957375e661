import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openEngine } from '../adapters/engine/open-engine.ts';
import { createLog } from '../adapters/telemetry/log.ts';
import { createRedactor } from '../adapters/telemetry/redactor.ts';
import type { Result } from '../common/result.ts';
import type { Operator as OperatorPort } from '../ports/operator.ts';
import { type Settings, secretsOf } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';
import { daemonOnceStarted, folderOf } from './daemon-file.ts';

export type Operator = OperatorPort;

export interface OperatorAccess {
  operator: Operator;
  /** `daemon`: a running daemon answers. `store`: the store was opened; if it is embedded, no daemon runs. */
  via: 'daemon' | 'store';
  /** Says that no daemon has used the store; see `noteIfUnused`. */
  unusedNote?: string | undefined;
  close(): Promise<void>;
}

/** Opens an operator on the store of the settings, on the daemon that has an embedded store open, or on the daemon at a URL. */
export async function openOperator(options: {
  settings: Settings;
  /** The URL of a daemon, which is asked with the token of the settings. */
  url?: string | undefined;
  /** Longest wait for a daemon that is starting, in real milliseconds. */
  waitMs?: number;
}): Promise<Result<OperatorAccess>> {
  const { settings, url, waitMs } = options;
  if (url !== undefined) return { ok: true, value: await overHttp({ url, token: settings.token?.reveal() }) };
  const { redact } = createRedactor(secretsOf(settings));
  const log = createLog({ level: 'error', destination: process.stderr, pretty: false, redact });
  const { queue } = settings;
  if (queue.kind === 'embedded' && !existsSync(join(folderOf(queue), 'db'))) {
    const problem = `no daemon has used ${queue.shown} yet: start ebb run, or name its store with EBB_QUEUE_URL`;
    return { ok: false, problem };
  }
  const opening = await openEngine({ url: queue.url.reveal(), group: settings.group, log });
  if (!opening.ok) {
    if (opening.error.code !== 'in_use') {
      const problem = `${opening.error.message}; a running daemon answers with --url http://HOST:PORT`;
      return { ok: false, problem };
    }
    const daemon = await daemonOnceStarted(folderOf(queue), waitMs);
    if (daemon) return { ok: true, value: await overHttp(daemon) };
    const problem = `a daemon is starting on ${queue.shown}, or another command uses it: ask again in a few seconds`;
    return { ok: false, problem };
  }
  // Loaded on use, since a daemon usually answers.
  const { openStoreOperator } = await import('./store-operator.ts');
  return { ok: true, value: await openStoreOperator(opening.engine, { log, settings }) };
}

async function overHttp({ url, token }: { url: string; token: string | undefined }): Promise<OperatorAccess> {
  const { createOperatorClient } = await import('../adapters/http/operator-client.ts');
  const operator = createOperatorClient({ url: url.replace(/\/+$/, ''), token, from: commandLineCaller().who });
  return { operator, via: 'daemon', close: async () => {} };
}
