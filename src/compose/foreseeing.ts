import { type OnProgress, readFleet, refusedNotes } from '../app/fleet/read-fleet.ts';
import type { Result } from '../common/result.ts';
import type { ForecastSubject } from '../domain/forecast/alike.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import type { BudgetOutlook } from '../domain/spend/state.ts';
import { MINUTE_MS } from '../domain/time/units.ts';
import type { Project } from '../ports/control-api.ts';
import type { Settings } from '../settings/settings.ts';
import { factsWithoutStore } from './daemon-facts.ts';
import { openForReading, type Reading } from './reading.ts';
import { factsIn, NOTHING_STORED, openStoreToRead, type StoredFacts } from './stored-facts.ts';

export interface ForeseeingOptions {
  settings: Settings;
  /** A snapshot to look at instead of the live fleet. */
  fleetFile?: string | undefined;
  /** Names and roles of branches matter: they cost a request for each project. */
  selectsByBranch: boolean;
  /** Now, milliseconds since the epoch. */
  nowMs: number;
  /** Called with how far the reading of the fleet has come. */
  onProgress?: OnProgress;
}

/** A fleet as a forecast starts from it. */
export interface Foreseeing {
  /** The instant of the computes' settings: now, or when the snapshot was taken. Milliseconds since the epoch. */
  knownAtMs: number;
  subjects: ForecastSubject[];
  projects: readonly Project[];
  budgets: readonly BudgetOutlook[];
  /** In which waves computes become ready, as far as that is fixed. */
  readyWaves: readonly ReadyWaves[];
  /** One line for each part of the fleet that could not be read. */
  missing: string[];
  /** One line for each assumption that the reader must know. */
  notes: string[];
}

/** Reads the fleet, live or from a file, with the baselines and holds that are known. Nothing is written, and no store is made. */
export async function readForForecast(options: ForeseeingOptions): Promise<Result<Foreseeing>> {
  if (options.fleetFile !== undefined) return openAndRead(options, async () => NOTHING_STORED);
  const stored = await openStoreToRead(options.settings);
  if (!stored.ok) return stored;
  if (!('opened' in stored)) {
    const { facts, notes } = await factsWithoutStore(options.settings, stored);
    return openAndRead(options, async () => facts, notes);
  }
  const { store, close } = stored.opened;
  try {
    return await openAndRead(options, (projectIds) =>
      factsIn(store, { projectIds, computeIds: [], nowMs: options.nowMs }),
    );
  } finally {
    await close();
  }
}

/** Of these projects. */
type ReadFacts = (projectIds: readonly string[]) => Promise<StoredFacts>;

async function openAndRead(
  options: ForeseeingOptions,
  readFacts: ReadFacts,
  notes: readonly string[] = [],
): Promise<Result<Foreseeing>> {
  const opened = await openForReading(options);
  if (!opened.ok) return opened;
  try {
    return await readSubjects(options, opened.value, { readFacts, notes });
  } finally {
    await opened.value.close();
  }
}

async function readSubjects(
  { selectsByBranch, nowMs, onProgress }: ForeseeingOptions,
  { api, facts, explain, takenAtMs }: Reading,
  { readFacts, notes }: { readFacts: ReadFacts; notes: readonly string[] },
): Promise<Result<Foreseeing>> {
  const fleet = await readFleet({ api, readBranches: selectsByBranch, onProgress });
  const missing = fleet.errors.map(explain);
  const [first] = missing;
  if (first !== undefined && fleet.projects.length === 0) return { ok: false, problem: first };
  const stored = await readFacts(fleet.projects.map(({ projectId }) => projectId));
  const subjects = fleet.computes.map((compute) => {
    const record = stored.records.get(compute.computeId);
    return {
      ...{ compute, baseline: record?.baseline ?? facts.get(compute.computeId)?.baseline },
      ...{ trials: record?.trials, lastDisruption: record?.lastDisruption },
      holds: stored.holds.filter(({ computeId }) => computeId === compute.computeId),
    };
  });
  // The instants that commands show begin with a minute.
  const knownAtMs = Math.floor((takenAtMs ?? nowMs) / MINUTE_MS) * MINUTE_MS;
  return {
    ok: true,
    value: {
      knownAtMs,
      subjects,
      projects: fleet.projects,
      budgets: stored.budgets,
      readyWaves: stored.readyWaves,
      missing,
      notes: [...notes, ...refusedNotes(fleet.branchNamesRefused)],
    },
  };
}
