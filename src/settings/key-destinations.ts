import type { z } from 'zod';
import { isLoopbackHost } from '../common/loopback.ts';
import type { Environment } from './environment.ts';
import type { SettingName, settingsSchema } from './schema.ts';
import type { Given } from './sources.ts';

/** The vendor's API: a key may go there whoever says so. */
const VENDOR_ORIGIN = 'https://console.neon.tech';

/**
 * Where keys may not go. `ebb.yaml` is found in the working folder, which may be a checkout of somebody else's branch: it must not
 * send a key of this machine to a host of its own choice. Keys that lie around for other tools stay with the vendor altogether.
 */
export function keyDestinationProblems(
  { api_url: apiUrl, accounts, api_key_file: keyFile }: z.output<typeof settingsSchema>,
  given: ReadonlyMap<SettingName, Given>,
  env: Environment,
): string[] {
  const { origin, hostname } = new URL(apiUrl);
  if (origin === VENDOR_ORIGIN || isLoopbackHost(hostname)) return [];
  const { where, source } = given.get('api_url') ?? {};
  if (env.EBB_API_KEY || keyFile !== undefined || accounts !== undefined) {
    if (source !== 'file') return [];
    return [
      `${where}: api_url would send API keys to ${origin}, which a file may not decide: set EBB_API_URL=${apiUrl}, or give --api-url`,
    ];
  }
  if (!env.NEON_API_KEY) return [];
  return [
    `NEON_API_KEY: goes to ${VENDOR_ORIGIN} or this machine only, and ${where} says ${origin}; set EBB_API_KEY to the key for it`,
  ];
}
