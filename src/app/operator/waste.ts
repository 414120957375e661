import { ascending } from '../../domain/sorted.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import {
  FINDINGS_PER_PAGE,
  type FindingDocument,
  type WasteDocument,
  type WasteQuery,
  type WasteTotal,
} from '../../ports/waste.ts';
import { readFindings } from '../recommend/stored-findings.ts';
import type { OperatorParts } from './parts.ts';

/** What the leader has found, over all projects: a page of it, and the sums of all of it. */
export async function waste(
  { store }: OperatorParts,
  { owner, finding, page }: WasteQuery,
): Promise<OperatorResult<WasteDocument>> {
  const found = [...(await readFindings(store)).values()];
  const instants = found.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const [first, last] = [instants[0], instants.at(-1)];
  const all = found.flatMap(({ findings }) => findings);
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
      ...{ projects: found.length, matched: matched.length, page: shown, pages },
      totals: totalsOf(matched),
      owners: [...new Set(all.map((one) => one.owner))].toSorted(ascending),
      findings: ranked.slice(start, start + FINDINGS_PER_PAGE),
    },
  };
}

/** As `ebb recommend` ranks them: by dollars, or by CU-hours where no price is known. */
function savedBy({ saves }: FindingDocument): number {
  const { low, high } = saves.usd_month ?? saves.cu_hours_month;
  return low + high;
}

function totalsOf(findings: readonly FindingDocument[]): WasteTotal[] {
  const totals = new Map<string, WasteTotal>();
  for (const { figure, policy, saves } of findings) {
    const by_policy = policy !== null;
    const key = `${figure} ${by_policy}`;
    const { findings: many, cu_hours_month, usd_month } = totals.get(key) ?? EMPTY;
    totals.set(key, {
      ...{ figure, by_policy, findings: many + 1 },
      cu_hours_month: plus(cu_hours_month, saves.cu_hours_month),
      usd_month: saves.usd_month ? plus(usd_month ?? NOTHING, saves.usd_month) : usd_month,
    });
  }
  return [...totals.values()].toSorted(
    (a, b) => Number(b.by_policy) - Number(a.by_policy) || b.cu_hours_month.high - a.cu_hours_month.high,
  );
}

const NOTHING = { low: 0, high: 0 };
const EMPTY = { findings: 0, cu_hours_month: NOTHING, usd_month: null };

/** Rounded, as what is added is. */
function plus(one: typeof NOTHING, two: typeof NOTHING): typeof NOTHING {
  const rounded = (value: number) => Math.round(value * 1e4) / 1e4;
  return { low: rounded(one.low + two.low), high: rounded(one.high + two.high) };
}
