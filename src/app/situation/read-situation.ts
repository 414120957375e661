/** Reads the fleet and the stored facts that decisions need, for commands. */

import type { Result } from '../../common/result.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import type { BudgetOutlook } from '../../domain/spend/state.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { ControlApiError, FleetApi, FleetFacts, Project } from '../../ports/control-api.ts';
import { type FleetReading, type OnProgress, readFleet, refusedBranchNotes } from '../fleet/read-fleet.ts';
import type { StoredFacts, StoredSource } from './stored-source.ts';

/** A fleet that can only be read. */
export interface FleetSource {
  api: FleetApi;
  /** False for a snapshot. */
  isLive: boolean;
  /** True for a fleet as daemons have stored it: the control API is not asked. */
  isStored?: boolean;
  facts: FleetFacts;
  /** The instant of a snapshot, if it has one. */
  takenAtMs?: number;
  /**
   * Of stored readings: from now on, projects that ebb has written to since they were read are read from the control API. True if there are
   * any.
   */
  readAgainAfterWrites?(records: StoredFacts['records']): boolean;
  /** How old the fleet is that it shows, in one line; absent where it is read when asked. */
  note?: string;
  /** Returns one line about an error of the API that says what to do. */
  explain(error: ControlApiError): string;
}

export function noteOf({ note }: Pick<FleetSource, 'note'>): string[] {
  return note === undefined ? [] : [note];
}

export interface StoredSituation {
  fleet: FleetReading;
  facts: StoredFacts;
  /** One line for each part of the fleet that could not be read. */
  missing: string[];
}

/** Reads the fleet and the stored facts about it; returns a problem if nothing of the fleet can be read. */
export async function readSituation(
  source: FleetSource,
  stored: StoredSource,
  options: {
    readBranches: boolean;
    project?: string | undefined;
    countsConnections: boolean;
    nowMs: number;
    onProgress?: OnProgress | undefined;
  },
): Promise<Result<StoredSituation>> {
  const { readBranches, project, countsConnections, nowMs, onProgress } = options;
  const { api, explain } = source;
  const read = async (): Promise<Result<StoredSituation>> => {
    const fleet = await readFleet({ api, readBranches, project, onProgress });
    const missing = fleet.errors.map((error) => explain(error));
    const [first] = missing;
    if (first !== undefined && fleet.projects.length === 0) return { ok: false, problem: first };
    const facts = await stored.facts({
      projectIds: fleet.projects.map(({ projectId }) => projectId),
      computeIds: countsConnections ? fleet.computes.map(({ computeId }) => computeId) : [],
      nowMs,
    });
    return { ok: true, value: { fleet, facts, missing } };
  };
  const first = await read();
  // Else values from before a change would be decided by as if somebody had gone back to them.
  return first.ok && source.readAgainAfterWrites?.(first.value.facts.records) ? read() : first;
}

/** The state of the fleet at the start of a forecast. */
export interface ForecastStart {
  /** The instant of the computes' settings: now, or when the snapshot was taken. Milliseconds since the epoch. */
  knownAtMs: number;
  /** When the snapshot was taken, if it says so. */
  takenAtMs?: number | undefined;
  /** The fleet is as daemons have stored it: the control API was not asked. */
  isStored: boolean;
  subjects: ForecastSubject[];
  projects: readonly Project[];
  budgets: readonly BudgetOutlook[];
  /** The waves in which computes become ready, where the leader has fixed them. */
  readyWaves: readonly ReadyWaves[];
  /** One line for each part of the fleet that could not be read. */
  missing: string[];
  /** One line for each assumption that the reader must know. */
  notes: string[];
}

export interface ForecastOptions {
  /** True if names and roles of branches are needed, which costs a request for each project. */
  selectsByBranch: boolean;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** Called with the progress of reading the fleet. */
  onProgress?: OnProgress;
}

/** Reads the fleet with the known baselines and holds. */
export async function readForecastStart(
  { selectsByBranch: readBranches, nowMs, onProgress }: ForecastOptions,
  { source, stored }: { source: FleetSource; stored: StoredSource },
): Promise<Result<ForecastStart>> {
  const read = await readSituation(source, stored, { readBranches, countsConnections: false, nowMs, onProgress });
  if (!read.ok) return read;
  const { fleet, facts, missing } = read.value;
  const subjects = fleet.computes.map((compute): ForecastSubject => {
    const record = facts.records.get(compute.computeId);
    return {
      compute,
      ...decidingFacts(record),
      baseline: record?.baseline ?? source.facts.get(compute.computeId)?.baseline,
      lastDisruption: record?.lastDisruption,
      holds: facts.holds.filter(({ computeId }) => computeId === compute.computeId),
    };
  });
  // The instants that commands show begin with a minute.
  const knownAtMs = Math.floor((source.takenAtMs ?? nowMs) / MINUTE_MS) * MINUTE_MS;
  const { budgets, readyWaves } = facts;
  const notes = [...noteOf(source), ...stored.notes, ...refusedBranchNotes(fleet.branchNamesRefused)];
  const { takenAtMs } = source;
  const { projects } = fleet;
  const isStored = source.isStored === true;
  return {
    ok: true,
    value: { knownAtMs, takenAtMs, isStored, subjects, projects, budgets, readyWaves, missing, notes },
  };
}
