import { CHANGE_BY, changeBy } from '../../domain/recommend/finding.ts';
import { expectedSaving } from '../../domain/recommend/recommend.ts';
import { ascending } from '../../domain/sorted.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import {
  FINDINGS_PER_PAGE,
  type FindingDocument,
  type WasteDocument,
  type WasteQuery,
  type WasteTotal,
} from '../../ports/waste.ts';
import { FINDINGS, totalsByFigure } from '../recommend/finding-document.ts';
import type { OperatorParts } from './parts.ts';

/** Returns one page of the leader's findings over all projects, and the totals of all findings that match. */
export async function waste(
  { store }: OperatorParts,
  { owner, finding, page }: WasteQuery,
): Promise<OperatorResult<WasteDocument>> {
  const analysed = [...(await FINDINGS.all(store)).values()];
  const instants = analysed.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const [first, last] = [instants[0], instants.at(-1)];
  const all = analysed.flatMap(({ findings }) => findings);
  const matched = all.filter(
    (one) => (owner === undefined || one.owner === owner) && (finding === undefined || one.finding === finding),
  );
  const pages = Math.max(1, Math.ceil(matched.length / FINDINGS_PER_PAGE));
  const shown = Math.min(page, pages);
  const start = (shown - 1) * FINDINGS_PER_PAGE;
  const ranked = matched.toSorted((a, b) => savedBy(b) - savedBy(a) || ascending(a.compute_id, b.compute_id));
  return {
    ok: true,
    value: {
      from: first === undefined ? null : isoInstant(first),
      to: last === undefined ? null : isoInstant(last),
      projects: analysed.length,
      matched: matched.length,
      page: shown,
      pages,
      totals: totalsOf(matched),
      owners: [...new Set(all.map((one) => one.owner))].toSorted(ascending),
      findings: ranked.slice(start, start + FINDINGS_PER_PAGE),
    },
  };
}

/** Returns the value that `ebb recommend` ranks findings by. */
function savedBy({ saves: { usd_month: usd, cu_hours_month: savesCuHours } }: FindingDocument): number {
  return expectedSaving({ savesCuHours, savesUsd: usd ?? undefined });
}

/** Returns totals by what makes the change, as `ebb recommend` prints them. */
function totalsOf(findings: readonly FindingDocument[]): WasteTotal[] {
  return CHANGE_BY.flatMap((change_by) => {
    const ofKind = findings.filter(
      ({ policy, done_by: doneBy, set_by: setBy, may_be_set_by: mayBeSetBy }) =>
        changeBy({ policy, doneBy, setBy, mayBeSetBy }) === change_by,
    );
    const by_policy = ['proposed_policy', 'existing_policy'].includes(change_by);
    return totalsByFigure(ofKind).map((total) => ({ ...total, by_policy, change_by }));
  });
}
