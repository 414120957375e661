/** Which computes a page of the fleet is about, in which order, and what they sum up to. */
import { filterInTurns } from '../../common/in-turns.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import { ascending } from '../../domain/sorted.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { ComputeStatus } from '../../ports/documents.ts';
import type { FleetDocument, FleetQuery, FleetTotals } from '../../ports/status-page.ts';

import { unmetHeadroom } from './documents.ts';

/** Words that are looked for; more would only cost. */
const MOST_WORDS = 10;
const HOUR_MS = 3_600_000;

/** An evaluation, what ebb does with its compute, and who owns it, as commands and costs have it. */
export interface ComputeWithStatus {
  evaluatedCompute: EvaluatedCompute;
  status: ComputeStatus;
  owner: string;
}

/** Those that every part of a query is true of. */
export function matching(
  computes: readonly ComputeWithStatus[],
  { q, owner, project, policy, status, reason }: FleetQuery,
): Promise<ComputeWithStatus[]> {
  const words = [...new Set(q.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, MOST_WORDS);
  const is = (wanted: string | undefined, found: readonly (string | undefined)[]) =>
    wanted === undefined || found.includes(wanted);
  return filterInTurns(computes, (one) => {
    const { compute, plan } = one.evaluatedCompute;
    return (
      is(owner, [one.owner]) &&
      is(project, [compute.projectId, compute.projectName]) &&
      (policy === undefined || policiesOf(one).some(({ name }) => name === policy)) &&
      is(status, [one.status]) &&
      is(reason, gatesOf(plan)) &&
      (words.length === 0 || holdsAll(textOf(one), words))
    );
  });
}

function policiesOf({ evaluatedCompute: { decision } }: ComputeWithStatus) {
  return Object.values(decision.deciders).flatMap((step) => step.policy ?? step.proposal?.policy ?? []);
}

/** The whole fleet in one line for the next hour. */
export function withinAnHour(computes: readonly ComputeWithStatus[], nowMs: number): FleetDocument['next_hour'] {
  const soon = computes.flatMap(({ evaluatedCompute: { nextBoundaryMs } }) =>
    nextBoundaryMs !== undefined && nextBoundaryMs <= nowMs + HOUR_MS ? [nextBoundaryMs] : [],
  );
  return { computes: soon.length, first: soon.length === 0 ? null : isoInstant(Math.min(...soon)) };
}

export function totalsOf(computes: readonly ComputeWithStatus[]): FleetTotals {
  const active = computes.filter(({ evaluatedCompute }) => evaluatedCompute.compute.state === 'active');
  const sum = (end: 'minCu' | 'maxCu') =>
    active.reduce((total, { evaluatedCompute }) => total + evaluatedCompute.compute[end], 0);
  return { computes: computes.length, active: active.length, min_cu: sum('minCu'), max_cu: sum('maxCu') };
}

/** Totals by owner or project, those that may use most first. */
export function groupsOf(computes: readonly ComputeWithStatus[], group: FleetQuery['group']): FleetDocument['groups'] {
  if (group === undefined) return [];
  const nameOf = (one: ComputeWithStatus) => (group === 'owner' ? one.owner : one.evaluatedCompute.compute.projectName);
  const byName = new Map<string, ComputeWithStatus[]>();
  for (const one of computes) {
    const members = byName.get(nameOf(one));
    if (members) members.push(one);
    else byName.set(nameOf(one), [one]);
  }
  const groups = [...byName].map(([name, members]) => ({ name, ...totalsOf(members) }));
  return groups.toSorted((a, b) => b.max_cu - a.max_cu || ascending(a.name, b.name));
}

function holdsAll(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(word));
}

/** What is looked through for the words of a search. */
function textOf({ evaluatedCompute, status }: ComputeWithStatus): string {
  const { compute, decision, plan } = evaluatedCompute;
  const { projectId, projectName, computeId, branchId, branchName = '', state, type } = compute;
  const policies = Object.values(decision.deciders).map((step) => (step.policy ?? step.proposal?.policy)?.name ?? '');
  const unmet = unmetHeadroom(evaluatedCompute) === undefined ? [] : ['headroom_unmet'];
  const all = [
    computeId,
    projectId,
    projectName,
    branchId,
    branchName,
    state,
    type,
    status,
    ...gatesOf(plan),
    ...unmet,
  ];
  return [...all, ...policies].join(' ').toLowerCase();
}

/** What needs attention first, or by a column. What is equal stands by project and id. */
export function inOrder(
  computes: readonly ComputeWithStatus[],
  sort: FleetQuery['sort'] = 'attention',
): ComputeWithStatus[] {
  const keyed = computes.map((one) => {
    const { compute, nextBoundaryMs = Number.POSITIVE_INFINITY } = one.evaluatedCompute;
    const place = `${compute.projectName} ${compute.computeId}`;
    const keys = {
      attention: [rankOf(one), nextBoundaryMs],
      compute: [compute.computeId],
      project: [place],
      size: [-compute.maxCu, -compute.minCu],
      next: [nextBoundaryMs],
    };
    return { one, keys: [...keys[sort], place] };
  });
  type Keyed = (typeof keyed)[number];
  const compared = (a: Keyed, b: Keyed): number => {
    for (const [index, key] of a.keys.entries()) {
      const order = ascending(key, b.keys[index] ?? key);
      if (order !== 0) return order;
    }
    return 0;
  };
  return keyed.toSorted(compared).map(({ one }) => one);
}

/** What lacks connections, then what is broken, then what changes now, then what waits, then what people have set, then the rest. */
function rankOf({ evaluatedCompute, status }: ComputeWithStatus): number {
  const { plan } = evaluatedCompute;
  if (unmetHeadroom(evaluatedCompute) !== undefined) return -1;
  if (status === 'degraded') return 0;
  if (gatesOf(plan).includes('fight_stopped')) return 1;
  if (plan.verdict === 'act') return 2;
  if (plan.verdict === 'wait') return 3;
  return { frozen: 4, held: 4, orphaned: 5, enforced: 6, observed: 6, unmatched: 7 }[status];
}
