import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { OwnerRule } from '../../domain/policy/owners.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import type { TeamScope } from '../../domain/policy/team-parts.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { HistoryEntry, HistoryKind } from '../../domain/records/history.ts';
import type { Clock, NewId } from '../../ports/clock.ts';
import type { Readiness, StatusDocument } from '../../ports/documents.ts';
import type { Caller, OperatorError, OperatorResult } from '../../ports/operator.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerNow } from '../fleet/owner-now.ts';
import type { WeekAhead } from './week-ahead.ts';

/** Dependencies of an operator: a daemon's own parts, or a store that was opened for one command. */
export interface OperatorParts {
  store: Store;
  log: Log;
  /** The instant that holds and freezes are about, milliseconds since the epoch. */
  now(): Promise<number>;
  /** Asks the daemons of the group to look at projects soon; does nothing where there are none. */
  requestReconciles(projectIds: readonly string[]): Promise<void>;
  clock: Pick<Clock, 'wait' | 'nextTurn'>;
  newId: NewId;
  /** Names the holder of a lease. */
  holder: string;
  /** The caller, where it is known better than by the owner that a command names. */
  caller?: Caller | undefined;
  /** Absent where no daemon is asked. */
  daemon?: DaemonView;
  /** Without a daemon: the policies of this machine, if readable, and are they the daemons'? */
  policies?: () => Promise<{ set: PolicySet; areCurrent: boolean } | undefined>;
}

/** Facts that only a running daemon has. Functions, since policies change while it runs. */
export interface DaemonView {
  fleet: Fleet;
  mode: Mode;
  policies(): CompiledPolicies;
  /** The scopes of teams. */
  teams(): readonly TeamScope[];
  /** Owner rules; they come before the owners of policies. */
  owners(): readonly OwnerRule[];
  /** Prices and plans. */
  costs(): CostRules;
  /** On which facts of the control API promises rest. */
  facts(): NonNullable<StatusDocument['facts']>;
  /** The source of the policies, such as a commit. */
  revision(): string | undefined;
  /**
   * Staged parts of the policy set and the number of computes that each would disconnect: of files of no team (an empty name), and of
   * teams.
   */
  staged(): readonly { team: string; hash: string; message: string; impact: { disconnected: number } }[];
  week: WeekAhead;
  /** Other reasons why the newest policies are not current: one line each. */
  policyProblems(): readonly string[];
  readiness(): Promise<Readiness>;
}

/** Projects whose records are read at once. */
const CONCURRENT_READS = 16;

/** Every compute that is stored. */
export async function allRecords(store: Store): Promise<KnownRecord[]> {
  const known: KnownRecord[] = [];
  for await (const one of storedRecords(store)) known.push(one);
  return known;
}

/** Every compute that is stored, a few projects at a time. */
export async function* storedRecords(store: Pick<Store, 'projectIds' | 'records'>): AsyncGenerator<KnownRecord> {
  const projectIds = await store.projectIds();
  for (let start = 0; start < projectIds.length; start += CONCURRENT_READS) {
    const some = projectIds.slice(start, start + CONCURRENT_READS);
    const read = await Promise.all(
      some.map(async (projectId) => ({ projectId, records: await store.records(projectId) })),
    );
    for (const { projectId, records } of read)
      for (const [computeId, record] of records) yield { projectId, computeId, record };
  }
}

export interface KnownRecord {
  projectId: string;
  computeId: string;
  record: ComputeRecord;
}

export function fail<T>(code: OperatorError['code'], message: string): OperatorResult<T> {
  return { ok: false, error: { code, message } };
}

/** A command of a person; about the whole fleet if it names no compute. */
export interface Command {
  kind: HistoryKind;
  code: string;
  message: string;
  /** In whose name. */
  owner: string;
  atMs: number;
  projectId?: string;
  computeId?: string;
}

/** The line of the audit, to be stored with what the person did. */
export async function auditOf(parts: OperatorParts, command: Command): Promise<HistoryEntry> {
  const { store, daemon, caller } = parts;
  const { kind, code, message, owner, atMs, projectId = '', computeId = '' } = command;
  const { teams: _quota, freezes: _limits, ...known } = caller ?? {};
  const { who = owner, ...more }: Partial<Caller> = known;
  const isOwn = who === owner || who.startsWith(`${owner}@`);
  const computeOwner = ownerOf(parts, computeId);
  const revision = daemon?.revision();
  return {
    atMs,
    projectId,
    computeId,
    kind,
    who,
    ...more,
    setHash: daemon?.policies().set.hash ?? (await store.generation())?.setHash ?? '',
    ...(revision !== undefined && { revision }),
    ...(computeOwner !== undefined && { owner: computeOwner }),
    reasons: [{ code, message: isOwn ? message : `${message} (in the name of ${owner})` }],
  };
}

/** The owner of a compute that the daemon knows. */
export function ownerOf({ daemon }: Pick<OperatorParts, 'daemon'>, computeId: string): string | undefined {
  const compute = daemon?.fleet.known(computeId)?.evaluatedCompute.compute;
  if (!daemon || !compute) return undefined;
  return ownerNow(daemon.fleet, { owners: daemon.owners(), policies: daemon.policies() }, compute);
}

/** An id that people can type: a prefix and ten hex digits. */
export function shortId(prefix: string, newId: NewId): string {
  return `${prefix}-${newId().replaceAll('-', '').slice(0, 10)}`;
}
