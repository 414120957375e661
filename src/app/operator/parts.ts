import { chunksOf } from '../../common/chunks.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { OwnerRule } from '../../domain/policy/owners.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import type { TeamScope } from '../../domain/policy/team-parts.ts';
import type { HistoryEntry, HistoryKind } from '../../domain/records/history.ts';
import type { Clock, NewId } from '../../ports/clock.ts';
import type { HerdDocument, Readiness, RefusedProjectDocument, StatusDocument } from '../../ports/documents.ts';
import type { Caller, OperatorError, OperatorResult } from '../../ports/operator.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { LocatedRecord, Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { Mode, RulesForGates } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerNow } from '../fleet/owner-now.ts';
import type { WeekAhead } from './week-ahead.ts';

/** Dependencies of an operator: those of a daemon, or a store that was opened for one command. */
export interface OperatorParts {
  store: Store;
  log: Log;
  /** Returns the present instant, by which holds and freezes expire; milliseconds since the epoch. */
  now(): Promise<number>;
  /** Asks the daemons of the group to reconcile these projects. Without a running daemon, nothing happens. */
  requestReconciles(projectIds: readonly string[]): Promise<void>;
  clock: Pick<Clock, 'wait' | 'nextTurn'>;
  newId: NewId;
  /** The name under which project leases are held. */
  holder: string;
  /** The authenticated caller. If absent, commands count as made by the owner that they name. */
  caller?: Caller | undefined;
  /** Absent if no daemon is asked. */
  daemon?: DaemonView;
  /** Without a daemon: reads the policies of this machine; undefined if they can't be read. `areCurrent`: daemons have the same policy set. */
  policies?: () => Promise<{ set: PolicySet; areCurrent: boolean } | undefined>;
  /** Without a daemon: the owner rules of this machine. */
  owners?: readonly OwnerRule[];
}

/** The state of a running daemon. Policies and rules are functions, since they change while it runs. */
export interface DaemonView {
  fleet: Fleet;
  mode: Mode;
  policies(): CompiledPolicies;
  rules(): RulesForGates;
  teams(): readonly TeamScope[];
  /** Owner rules; they come before the owners of policies. */
  owners(): readonly OwnerRule[];
  /** Prices and plans. */
  costs(): CostRules;
  /** The verified facts of the control API on which ebb's promises rely. */
  facts(): NonNullable<StatusDocument['facts']>;
  herds(): readonly HerdDocument[];
  /** The rate limits that requests wait for, or that are not used in full. */
  apiLimits(): NonNullable<StatusDocument['api_limits']>;
  refusedProjects(): readonly RefusedProjectDocument[];
  /** The source of the policies, such as a commit. */
  revision(): string | undefined;
  /** The staged parts of the policy set. Files that belong to no team form the part of team ''. */
  staged(): readonly {
    team: string;
    hash: string;
    setHash: string;
    message: string;
    impact: { disconnected: number; later?: number };
  }[];
  week: WeekAhead;
  /** Other reasons why the newest policies are not in effect, one line each: of files of no team, and of teams for which `isShown` is true. */
  policyProblems(isShown?: (team: string) => boolean): readonly string[];
  readiness(): Promise<Readiness>;
}

/** Projects whose records are read concurrently. */
const CONCURRENT_READS = 16;

export async function allRecords(store: Store): Promise<LocatedRecord[]> {
  const records: LocatedRecord[] = [];
  for await (const record of storedRecords(store)) records.push(record);
  return records;
}

/** Reads the records of all computes, a few projects at a time. */
export async function* storedRecords(store: Pick<Store, 'projectIds' | 'records'>): AsyncGenerator<LocatedRecord> {
  for (const projectIds of chunksOf(await store.projectIds(), CONCURRENT_READS)) {
    const read = await Promise.all(projectIds.map((projectId) => store.records(projectId)));
    for (const [index, projectId] of projectIds.entries())
      for (const [computeId, record] of read[index] ?? []) yield { projectId, computeId, record };
  }
}

export function fail<T>(code: OperatorError['code'], message: string): OperatorResult<T> {
  return { ok: false, error: { code, message } };
}

/** A person's command, as the audit notes it. A command without `computeId` concerns the whole fleet. */
export interface Command {
  kind: HistoryKind;
  code: string;
  message: string;
  /** The person in whose name the command was given. */
  owner: string;
  atMs: number;
  projectId?: string;
  computeId?: string;
}

/** Returns the audit entry of a command. Store it together with the effect of the command. */
export async function auditOf(parts: OperatorParts, command: Command): Promise<HistoryEntry> {
  const { store, daemon, caller } = parts;
  const { kind, code, message, owner, atMs, projectId = '', computeId = '' } = command;
  const { teams: _teams, freezes: _freezes, who = owner, ...identity }: Partial<Caller> = caller ?? {};
  const isInOwnName = who === owner || who.startsWith(`${owner}@`);
  const computeOwner = ownerOf(parts, computeId);
  const revision = daemon?.revision();
  return {
    atMs,
    projectId,
    computeId,
    kind,
    who,
    ...identity,
    setHash: daemon?.policies().set.hash ?? (await store.generation())?.setHash ?? '',
    ...(revision !== undefined && { revision }),
    ...(computeOwner !== undefined && { owner: computeOwner }),
    reasons: [{ code, message: isInOwnName ? message : `${message} (in the name of ${owner})` }],
  };
}

/** Returns the owner of a compute; undefined if no daemon is asked, or the daemon does not know the compute. */
export function ownerOf({ daemon }: Pick<OperatorParts, 'daemon'>, computeId: string): string | undefined {
  const compute = daemon?.fleet.latestEvaluation(computeId)?.compute;
  if (!daemon || !compute) return undefined;
  return ownerNow(daemon.fleet, { owners: daemon.owners(), policies: daemon.policies() }, compute);
}

/** Returns an id that people can type: a prefix and ten hexadecimal digits. */
export function shortId(prefix: string, newId: NewId): string {
  return `${prefix}-${newId().replaceAll('-', '').slice(0, 10)}`;
}
