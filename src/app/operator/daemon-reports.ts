/** Writes and reads the reports by which the daemons of a group tell their status to commands that can only reach the store. */
import { hostname } from 'node:os';
import { groupBy } from '../../domain/grouping.ts';
import { isHashOf } from '../../domain/policy/policy.ts';
import { isRecentReport, recentReports } from '../../domain/records/recovery-times.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import type { Clock, NewId } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { DaemonDocument, Readiness, RefusedProjectDocument, StatusDocument } from '../../ports/documents.ts';
import type { Approval, DocumentStore, Store } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { LeaderLease, WriteBlock } from '../group/leader.ts';
import { currentIdentity } from '../rollout/generations.ts';
import { REPORTS } from '../rollout/reload.ts';
import { policyProblems, type SetsDeps, stagedSets } from '../rollout/write-permission.ts';
import type { Outages } from '../telemetry/outages.ts';
import {
  apiLimitsDocument,
  countWaiting,
  factsDocument,
  herdDocuments,
  projectsOf,
  refusedProjects,
  unmetOf,
} from './documents.ts';

/** A report is deleted after this time, in milliseconds. */
const FORGOTTEN_AFTER_MS = DAY_MS;

/** Limits of a report; the daemon's own page shows more. The limit of staged sets is high, since people approve by these entries. */
const MAX_STAGED_SETS = 100;
const MAX_UNMET = 8;
const MAX_PROBLEMS = 8;
const MAX_FACTS = 24;
const MAX_LIMITS = 8;
const MAX_REFUSED = 24;
const MAX_FAILED_CHECKS = 8;
const MAX_CHARACTERS = 240;

/** The longest interval of reports, in real milliseconds. It is shorter than the time after which a silent daemon counts as dead (reload.ts). */
const REPORT_MS = 10_000;

export interface ReportDeps extends SetsDeps {
  fleet: Pick<Fleet, 'evaluatedComputes' | 'projectIds' | 'listed' | 'cachedProject' | 'latestEvaluation'>;
  outages: Pick<Outages, 'refused'>;
  api: Pick<ControlApi, 'accountStatus'>;
  clock: Clock;
  newId: NewId;
  store: Pick<DocumentStore, 'putDocument' | 'deleteDocuments'>;
  mode: DaemonDocument['mode'];
  leaderLease: Pick<LeaderLease, 'isHeld' | 'isAlone'>;
  /** Why this daemon may not write, if known. */
  blocked(): WriteBlock | undefined;
  readiness(): Promise<Readiness>;
  rhythm: { resyncMs: number };
  runInBackground: RunInBackground;
  version: string;
}

/** Starts to report; closing removes the report. A daemon that is alone with its store doesn't report, since commands ask it directly. */
export function startReporting(deps: ReportDeps): Running {
  const { clock, store, rhythm, leaderLease, runInBackground } = deps;
  if (leaderLease.isAlone) return { close: async () => {} };
  const name = deps.newId();
  const report = () =>
    runInBackground('daemon_report', async () => {
      const readiness = await deps.readiness();
      await REPORTS.put(store, name, documentOf(deps, readiness));
    });
  const first = report();
  const rounds = clock.every(Math.min(rhythm.resyncMs, REPORT_MS), report);
  return {
    async close() {
      await rounds.close();
      // Without this wait, the first report might be stored after the deletion, and remain.
      await first;
      await runInBackground('daemon_report', () => REPORTS.delete(store, [name]));
    },
  };
}

function documentOf(deps: ReportDeps, { ready, checks }: Readiness): DaemonDocument {
  const { clock, mode, version, leaderLease, rules, sets } = deps;
  const blocked = mode === 'enforce' ? deps.blocked() : 'staged';
  // Superseded daemons leave a take-over to a daemon that reports a newer generation. If its own waits for approval, it must report none.
  const reportsGeneration = blocked === undefined || (blocked === 'superseded' && !sets.takeOver);
  const staged = stagedSets(deps).slice(0, MAX_STAGED_SETS);
  const cut = (text: string) => text.slice(0, MAX_CHARACTERS);
  return {
    host: `${hostname()}:${process.pid}`,
    version,
    mode,
    leader: leaderLease.isHeld(),
    last_seen: isoInstant(clock.now()),
    set_hash: rules.current.policies.set.hash,
    decision_hash: blocked === undefined ? currentIdentity(deps).decisionHash : null,
    generation: reportsGeneration ? (sets.generation ?? null) : null,
    staged: staged.map(({ message }) => message),
    staged_sets: staged.map(({ team, hash, setHash, impact }) => ({
      hash,
      disconnected: impact.disconnected,
      ...(impact.later !== undefined && { later: impact.later }),
      owner: team,
      set_hash: setHash,
    })),
    policy_problems: policyProblems(deps).slice(0, MAX_PROBLEMS).map(cut),
    waiting: countWaiting(deps),
    unmet_headroom: unmetOf(deps)
      .slice(0, MAX_UNMET)
      .map((one) => ({ ...one, message: cut(one.message) })),
    facts: factsDocument(rules).slice(0, MAX_FACTS),
    herds: herdDocuments(deps, clock.now()),
    api_limits: apiLimitsDocument(deps).slice(0, MAX_LIMITS),
    refused_projects: refusedProjects(deps)
      .slice(0, MAX_REFUSED)
      .map((one) => ({ ...one, message: cut(one.message) })),
    projects: projectsOf(deps.fleet),
    readiness: {
      ready,
      checks: checks
        .filter(({ ok }) => !ok)
        .slice(0, MAX_FAILED_CHECKS)
        .map((one) => ({ ...one, message: cut(one.message) })),
    },
  };
}

/** Returns true for a set that a person has approved: the daemons that have staged the set are about to make it current. */
export function isApproved({ hash }: { hash: string }, approvals: readonly Approval[]): boolean {
  return approvals.some((one) => isHashOf(one.hash, hash));
}

/** Returns the report without the sets that were approved since they were staged. */
function withoutApproved(report: DaemonDocument, approvals: readonly Approval[]): DaemonDocument {
  const { staged, staged_sets: sets } = report;
  if (!sets) return report;
  const isLeft = sets.map((set) => !isApproved(set, approvals));
  return {
    ...report,
    staged: staged.filter((_message, index) => isLeft[index] ?? true),
    staged_sets: sets.filter((_set, index) => isLeft[index]),
  };
}

/**
 * Returns the reports of the last day, the leader's first, then the newest, and deletes older ones. A leader that has not reported for the
 * duration of its lease does not count as the leader. Leaves out reports in the format of another version, and sets approved since they were
 * staged.
 */
export async function readReports(
  store: Pick<Store, 'documents' | 'deleteDocuments' | 'approvals'>,
  nowMs: number,
): Promise<DaemonDocument[]> {
  const oldest = isoInstant(nowMs - FORGOTTEN_AFTER_MS);
  const reports = [...(await REPORTS.all(store))];
  const old = reports.filter(([, { last_seen }]) => last_seen < oldest).map(([name]) => name);
  if (old.length > 0) await REPORTS.delete(store, old);
  const isAnyStaged = reports.some(([, { staged }]) => staged.length > 0);
  const approvals = isAnyStaged ? await store.approvals() : [];
  const current = reports.flatMap(([name, report]) =>
    old.includes(name)
      ? []
      : [{ ...withoutApproved(report, approvals), leader: report.leader && isRecentReport(report, nowMs) }],
  );
  return current.toSorted((a, b) => Number(b.leader) - Number(a.leader) || b.last_seen.localeCompare(a.last_seen));
}

/** Returns the refused projects of all recent reports, each refusal once, since a daemon knows only its own requests. Null if no report has any. */
export function reportedRefusals(reports: readonly DaemonDocument[], nowMs: number): RefusedProjectDocument[] | null {
  const reported = recentReports(reports, nowMs).flatMap(({ refused_projects }) =>
    refused_projects ? [refused_projects] : [],
  );
  if (reported.length === 0) return null;
  const bySince = reported.flat().toSorted((a, b) => a.since.localeCompare(b.since));
  const alike = groupBy(bySince, ({ project_id, request }) => `${project_id} ${request}`);
  return [...alike.values()].flatMap(([first]) => first ?? []);
}

/**
 * Returns the limits of accounts in all recent reports, since a daemon knows only its own requests. Of an account's waits the one that ends last
 * counts; the same holds for its lowered limits. Entries whose end has passed are left out: a killed daemon leaves its report. Null if no report
 * has this field.
 */
export function reportedLimits(reports: readonly DaemonDocument[], nowMs: number): StatusDocument['api_limits'] {
  const reported = recentReports(reports, nowMs).flatMap((one) => (one.api_limits ? [one.api_limits] : []));
  if (reported.length === 0) return null;
  const current = reported.flat().filter(({ normal_by }) => normal_by > isoInstant(nowMs));
  const latest = current.toSorted((a, b) => b.normal_by.localeCompare(a.normal_by));
  const alike = groupBy(latest, ({ account, level }) => `${account} ${level === 0}`);
  return [...alike.values()].flatMap(([first]) => first ?? []);
}

/**
 * Returns the problems of policies in the reports, each problem once, since each daemon reads its own files. Null if no report has this field. A
 * killed daemon leaves its report for a day, so only the first report and those of the last half minute count.
 */
export function reportedProblems([first, ...others]: readonly DaemonDocument[], nowMs: number): string[] | null {
  if (!first) return null;
  const oldest = isoInstant(nowMs - 3 * REPORT_MS);
  const reported = [first, ...others.filter(({ last_seen }) => last_seen >= oldest)].flatMap(
    (one) => one.policy_problems ?? [],
  );
  return first.policy_problems === undefined && reported.length === 0 ? null : [...new Set(reported)];
}
