import { combineEstimates, type Estimate, mapEstimate, mapRange, type Range, ZERO } from '../../domain/estimate.ts';
import type { Finding } from '../../domain/recommend/finding.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { FigureTotal, FindingDocument } from '../../ports/waste.ts';
import { sharedDocuments } from '../shared-documents.ts';
import { policyYaml } from './policies.ts';

/** The document of `ebb recommend --json`. */
export function recommendJson({ fromMs, toMs }: { fromMs: number; toMs: number }, findings: readonly Finding[]) {
  return { from: isoInstant(fromMs), to: isoInstant(toMs), findings: findings.map(findingDocument) };
}

export function findingDocument(finding: Finding): FindingDocument {
  const { compute, owner, now, proposed, figure, savesCuHours, savesUsd, startsMonth, awakeShare, evidence, risk } =
    finding;
  return {
    finding: finding.finding,
    project_id: compute.projectId,
    project_name: compute.projectName,
    compute_id: compute.computeId,
    owner,
    now,
    proposed,
    figure,
    saves: {
      cu_hours_month: mapEstimate(savesCuHours, rounded),
      usd_month: savesUsd ? mapEstimate(savesUsd, rounded) : null,
    },
    starts_month: startsMonth ? change(startsMonth) : null,
    awake_share: awakeShare ? change(awakeShare) : null,
    evidence,
    risk,
    policy: finding.policy ? policyYaml(finding, finding.policy) : null,
    ...(finding.doneBy !== undefined && { done_by: finding.doneBy }),
    ...(finding.setBy !== undefined && { set_by: finding.setBy }),
    ...(finding.mayBeSetBy !== undefined && { may_be_set_by: finding.mayBeSetBy }),
  };
}

/** Sums findings separately by figure, since figures differ in certainty. The largest sum comes first. */
export function totalsByFigure(findings: readonly Pick<FindingDocument, 'figure' | 'saves'>[]): FigureTotal[] {
  const totals = new Map<FindingDocument['figure'], FigureTotal>();
  for (const { figure, saves } of findings) {
    const { findings: count, cu_hours_month, usd_month } = totals.get(figure) ?? EMPTY;
    totals.set(figure, {
      figure,
      findings: count + 1,
      cu_hours_month: plus(cu_hours_month, saves.cu_hours_month),
      usd_month: saves.usd_month ? plus(usd_month ?? ZERO, saves.usd_month) : usd_month,
    });
  }
  return [...totals.values()].toSorted((a, b) => b.cu_hours_month.mid - a.cu_hours_month.mid);
}

const EMPTY = { findings: 0, cu_hours_month: ZERO, usd_month: null };

function plus(one: Estimate, two: Estimate): Estimate {
  return combineEstimates(one, two, (a, b) => rounded(a + b));
}

function change({ before, after }: { before: number; after: Range }): { now: number; then: Range } {
  // biome-ignore lint/suspicious/noThenProperty: the name of the field; a number or range is no promise
  return { now: rounded(before), then: mapRange(after, rounded) };
}

function rounded(value: number): number {
  return Number(value.toFixed(Math.abs(value) < 1 ? 4 : 2));
}

/* The leader stores the findings of each project, so that all daemons and commands show the same. */

/** By project id. Findings of another version count as absent and are computed again. */
export const FINDINGS = sharedDocuments<ProjectFindings>('findings', 2);

/** At most this many findings of a project are stored, those with the largest savings. */
const MAX_STORED_FINDINGS = 100;

export interface ProjectFindings {
  account: string;
  /** When the project was analysed, milliseconds since the epoch. */
  atMs: number;
  findings: FindingDocument[];
}

export function storeFindings(
  store: Pick<DocumentStore, 'putDocument'>,
  projectId: string,
  found: ProjectFindings,
): Promise<void> {
  return FINDINGS.put(store, projectId, { ...found, findings: found.findings.slice(0, MAX_STORED_FINDINGS) });
}
