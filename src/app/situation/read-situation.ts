/** Reads the fleet and the stored facts that decisions need, for commands. */

import type { Result } from '../../common/result.ts';
import { type ForecastSubject, subjectOf } from '../../domain/forecast/compute-groups.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { BudgetOutlook } from '../../domain/spend/state.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { ControlApiError, FleetApi, FleetFacts, Project } from '../../ports/control-api.ts';
import { refusedBranchNotes } from '../fleet/branches.ts';
import { missingParts } from '../fleet/missing-parts.ts';
import { type FleetReading, type OnProgress, readFleet } from '../fleet/read-fleet.ts';
import type { StoredFacts, StoredSource } from './stored-source.ts';

/** A fleet that can only be read. */
export interface FleetSource {
  api: FleetApi;
  /** False for a snapshot. */
  isLive: boolean;
  /** True if the fleet is read from the store of daemons, not from the control API. */
  isStored?: boolean;
  facts: FleetFacts;
  /** The instant of a snapshot, if it has one. */
  takenAtMs?: number;
  /** One line about the age of a stored fleet, once it was read; undefined if all was read now. */
  note?(): string | undefined;
  /** Returns one line about an error of the API that says what to do. */
  explain(error: ControlApiError): string;
}

export function noteOf(source: Pick<FleetSource, 'note'>): string[] {
  const note = source.note?.();
  return note === undefined ? [] : [note];
}

export interface StoredSituation {
  fleet: FleetReading;
  facts: StoredFacts;
  /** One line for each part of the fleet that could not be read. */
  missing: string[];
}

/** Reads the fleet and the stored facts about it. Returns a problem if no project can be read. */
export async function readSituation(
  source: FleetSource,
  stored: StoredSource,
  options: {
    readBranches: boolean;
    project?: string | undefined;
    countsConnections: boolean;
    /** Reads verdicts and watches of guards, too. */
    readGuards?: boolean;
    nowMs: number;
    onProgress?: OnProgress | undefined;
  },
): Promise<Result<StoredSituation>> {
  const { readBranches, project, countsConnections, readGuards = false, nowMs, onProgress } = options;
  const { api, explain } = source;
  const fleet = await readFleet({ api, readBranches, project, onProgress });
  const missing = missingParts(fleet.errors, { explain, projects: fleet.unread });
  const [first] = missing;
  if (first !== undefined && fleet.projects.length === 0) return { ok: false, problem: first };
  const facts = await stored.facts({
    projectIds: fleet.projects.map(({ projectId }) => projectId),
    computeIds: countsConnections ? fleet.computes.map(({ computeId }) => computeId) : [],
    readGuards,
    nowMs,
  });
  return { ok: true, value: { fleet, facts, missing } };
}

/** The state of the fleet at the start of a forecast. */
export interface ForecastStart {
  /** The instant of the computes' settings: now, or when the snapshot was taken. Milliseconds since the epoch. */
  knownAtMs: number;
  /** When the snapshot was taken, if it says so. */
  takenAtMs?: number | undefined;
  /** True if the fleet was read from the store of daemons, not from the control API. */
  isStored: boolean;
  subjects: ForecastSubject[];
  /** By compute id. */
  records: ReadonlyMap<string, ComputeRecord>;
  projects: readonly Project[];
  budgets: readonly BudgetOutlook[];
  budgetsUnknown?: StoredFacts['budgetsUnknown'];
  /** The waves that the leader has fixed. */
  readyWaves: readonly ReadyWaves[];
  /** One line for each part of the fleet that could not be read. */
  missing: string[];
  /** The assumptions that the user must know, one line each. */
  notes: string[];
}

export interface ForecastOptions {
  /** True if names and roles of branches are needed, which costs a request for each project. */
  selectsByBranch: boolean;
  nowMs: number;
  onProgress?: OnProgress;
}

export async function readForecastStart(
  { selectsByBranch: readBranches, nowMs, onProgress }: ForecastOptions,
  { source, stored }: { source: FleetSource; stored: StoredSource },
): Promise<Result<ForecastStart>> {
  const read = await readSituation(source, stored, { readBranches, countsConnections: false, nowMs, onProgress });
  if (!read.ok) return read;
  const { fleet, facts, missing } = read.value;
  const subjects = fleet.computes.map((compute) =>
    subjectOf(compute, facts.records.get(compute.computeId), {
      baseline: source.facts.get(compute.computeId)?.baseline,
      holds: facts.holds.filter(({ computeId }) => computeId === compute.computeId),
      freezes: facts.freezes,
    }),
  );
  // Forecasts begin at a full minute.
  const knownAtMs = Math.floor((source.takenAtMs ?? nowMs) / MINUTE_MS) * MINUTE_MS;
  return {
    ok: true,
    value: {
      knownAtMs,
      takenAtMs: source.takenAtMs,
      isStored: source.isStored === true,
      subjects,
      records: facts.records,
      projects: fleet.projects,
      budgets: facts.budgets,
      budgetsUnknown: facts.budgetsUnknown,
      readyWaves: facts.readyWaves,
      missing,
      notes: [...noteOf(source), ...stored.notes, ...refusedBranchNotes(fleet.branchNamesRefused)],
    },
  };
}
