/** Opens the fleet for commands that only read it: from the control API, or from a snapshot. */

import { readFile, stat } from 'node:fs/promises';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { createGroupBudget, createReadingBudget } from '../adapters/control-api/group-budget.ts';
import { createSnapshotApi } from '../adapters/control-api/snapshot.ts';
import type { FleetSource } from '../app/situation/read-situation.ts';
import { isLoopbackHost } from '../common/loopback.ts';
import type { Result } from '../common/result.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import type { ControlApiError } from '../ports/control-api.ts';
import type { Engine } from '../ports/engine.ts';
import type { Settings } from '../settings/settings.ts';
import { explainApiError, NO_METRICS, openControlApi, readKeysAtStart } from './control-api.ts';

export interface ReadingOptions {
  settings: Settings;
  /** A snapshot to read instead of the control API: then no key is needed. */
  fleetFile?: string | undefined;
  /** The present, for computes of the snapshot without an age; now by default. */
  nowMs?: number;
  /** An open engine of the daemons' group, whose rate budget is then shared. */
  engine?: Engine;
  /** For a few requests that a person waits for: they may use what `api_reserve` leaves free, however busy the daemons are. */
  usesReserve?: boolean;
}

/** A fleet that is open. */
export interface Reading extends FleetSource {
  close(): Promise<void>;
}

/** Larger than any fleet, in bytes: a file that is no fleet file must not fill the memory. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Opens a fleet for a command that only reads: a fleet file, or the control API of the settings, for which `NEON_API_KEY` will
 * do. Nothing is asked yet.
 */
export async function openForReading(options: ReadingOptions): Promise<Result<Reading>> {
  const { fleetFile } = options;
  return fleetFile === undefined ? openApi(options) : openFile(fleetFile, options.nowMs ?? Date.now());
}

async function openApi({ settings, engine, usesReserve = false }: ReadingOptions): Promise<Result<Reading>> {
  const keys = readKeysAtStart(settings.accounts, 'read');
  if (!keys.ok) return keys;
  const clock = systemClock();
  const alone = isLoopbackHost(new URL(settings.apiUrl).hostname);
  const limits = limitsOf(settings.apiRequestsPerMinute, usesReserve ? 0 : settings.apiReserve);
  const budget = engine
    ? await createGroupBudget({ engine, limits, clock })
    : createReadingBudget({ alone, limits, clock });
  const api = openControlApi({ settings, purpose: 'read', hide: () => {}, metrics: NO_METRICS, budget, clock });
  const explain = (error: ControlApiError) => explainApiError(settings, error);
  return {
    ok: true,
    value: { api, isLive: true, facts: new Map(), explain, close: () => api.close() },
  };
}

async function openFile(file: string, nowMs: number): Promise<Result<Reading>> {
  const text = await readText(file);
  if (!text.ok) return text;
  const snapshot = createSnapshotApi({ text: text.value, name: file, nowMs });
  if (!snapshot.ok) return { ok: false, problem: `fleet file ${snapshot.problem}` };
  const { api } = snapshot.value;
  const explain = ({ message }: ControlApiError) => `${file}: ${message}`;
  return { ok: true, value: { ...snapshot.value, isLive: false, explain, close: () => api.close() } };
}

async function readText(file: string): Promise<Result<string>> {
  try {
    if ((await stat(file)).size > MOST_BYTES)
      return { ok: false, problem: `fleet file ${file}: is larger than 64 MiB` };
    return { ok: true, value: await readFile(file, 'utf8') };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    return { ok: false, problem: `cannot read the fleet file ${file} (${code}); check the path and its permissions` };
  }
}
