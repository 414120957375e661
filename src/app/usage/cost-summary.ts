/** This month's cost, as people see it everywhere: the leader adds it up, every daemon and command reads it from the store. */
import { type Estimate, ZERO } from '../../domain/estimate.ts';
import { type Amount, times, weakestFigure } from '../../domain/recommend/saving.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { type Projection, sumOfRanges } from '../../domain/usage/projection.ts';
import type { CostsDocument, OwnerCostsDocument } from '../../ports/cost-documents.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { sharedDocuments } from '../shared-documents.ts';
import type { Counterfactual } from './counterfactual.ts';
import type { MonthCosts } from './month-costs.ts';

const SUMMARY = sharedDocuments<CostsDocument>('costs', 1);
const NAME = 'month';

/** All organizations together; undefined if nothing is known of any. */
export function costSummary(all: readonly MonthCosts[], nowMs: number): CostsDocument | undefined {
  const [first] = all;
  if (first === undefined) return undefined;
  const owners = all.flatMap(({ account, owners: own }) => own.map((one) => ownerDocument(account, one)));
  // Sums unrounded values, so that they equal those of `ebb cost`.
  const parts = all.flatMap(({ owners: own }) => own);
  const { month } = first;
  return {
    at: isoInstant(nowMs),
    from: isoInstant(month.fromMs),
    to: isoInstant(month.toMs),
    known_until: isoInstant(Math.min(...all.map(({ knownUntilMs }) => knownUntilMs))),
    owners: owners.toSorted((a, b) => b.cu_hours - a.cu_hours),
    total: {
      cu_hours: rounded(parts.reduce((sum, { cuSeconds }) => sum + cuSeconds, 0) / 3600),
      usd: sumOf(parts.map(({ usd }) => usd)),
      unknown_hours: owners.reduce((sum, { unknown_hours }) => sum + unknown_hours, 0),
      projected_usd: sumIfKnown(all.map(({ total }) => total.projectedUsd ?? null)),
      ...whyNot(all.map(({ total }) => total.notProjected)),
    },
    would_have_saved: savedDocument(all),
  };
}

/** The part of a summary that belongs to an owner. The saving that enforcing would have made is known in total only. */
export function summaryOfOwner(summary: CostsDocument, owner: string): CostsDocument {
  const owners = summary.owners.filter((one) => one.owner === owner);
  const total = {
    cu_hours: rounded(owners.reduce((sum, { cu_hours }) => sum + cu_hours, 0)),
    usd: sumOf(owners.map(({ usd }) => usd ?? undefined)),
    unknown_hours: owners.reduce((sum, { unknown_hours }) => sum + unknown_hours, 0),
    projected_usd: sumIfKnown(owners.map(({ projected_usd }) => projected_usd)),
    ...whyNot(owners.map(({ not_projected }) => not_projected)),
  };
  return { ...summary, owners, total, would_have_saved: null };
}

function savedDocument(all: readonly MonthCosts[]): CostsDocument['would_have_saved'] {
  const parts = all.flatMap(({ counterfactual = [] }) => counterfactual);
  if (parts.length === 0) return null;
  const sum = (pick: (part: Counterfactual) => number) => rounded(parts.reduce((total, part) => total + pick(part), 0));
  const estimateOf = (pick: (part: Counterfactual) => Estimate) => ({
    low: sum((part) => pick(part).low),
    mid: sum((part) => pick(part).mid),
    high: sum((part) => pick(part).high),
  });
  const cuHours = (pick: (part: Counterfactual) => Amount) =>
    estimateOf((part) => times(pick(part), 1 / 3600).cuSeconds);
  const isPriced = parts.every(({ saved }) => saved.usd !== undefined);
  return {
    figure: 'replayed',
    computes: sum(({ computes }) => computes),
    used_cu_hours: sum(({ used }) => used.cuSeconds.mid / 3600),
    cu_hours: cuHours(({ saved }) => saved),
    parts: [
      { part: 'sizes', figure: 'replayed', cu_hours: cuHours(({ bySizes }) => bySizes) },
      {
        part: 'timeouts',
        figure: weakestFigure(parts.map(({ timeoutsFigure }) => timeoutsFigure)),
        cu_hours: cuHours(({ byTimeouts }) => byTimeouts),
      },
    ],
    usd: isPriced ? estimateOf(({ saved }) => saved.usd ?? ZERO) : null,
  };
}

function ownerDocument(account: string, costs: MonthCosts['owners'][number]): OwnerCostsDocument {
  const { name: owner, cuSeconds, usd, unknownHours, projectedUsd, notProjected, projectedCuSeconds, anomaly } = costs;
  return {
    account,
    owner,
    cu_hours: rounded(cuSeconds / 3600),
    usd: usd === undefined ? null : rounded(usd),
    unknown_hours: unknownHours,
    projected_usd: projectedUsd ? scaled(projectedUsd, 1) : null,
    ...whyNot([notProjected]),
    projected_cu_hours: projectedCuSeconds ? scaled(projectedCuSeconds, 1 / 3600) : null,
    anomaly: anomaly
      ? {
          day: isoInstant(anomaly.dayMs).slice(0, 10),
          cu_hours: rounded(anomaly.used / 3600),
          ordinary_cu_hours: rounded(anomaly.ordinary / 3600),
        }
      : null,
  };
}

/** Null if a part is not known. */
function sumOf(parts: readonly (number | undefined)[]): number | null {
  const known = parts.filter((part) => part !== undefined);
  return known.length < parts.length ? null : rounded(known.reduce((sum, part) => sum + part, 0));
}

/** Null if a part is not known. */
function sumIfKnown(ranges: readonly (Projection | null)[]): Projection | null {
  const known = ranges.filter((range) => range !== null);
  return known.length < ranges.length || known.length === 0 ? null : scaled(sumOfRanges(known), 1);
}

/** Why a sum is not projected: as the first of its parts that is not. */
function whyNot(reasons: readonly OwnerCostsDocument['not_projected'][]): Pick<OwnerCostsDocument, 'not_projected'> {
  const reason = reasons.find((one) => one !== undefined);
  return reason === undefined ? {} : { not_projected: reason };
}

function scaled({ low, mid, high }: Projection, factor: number): Projection {
  return { low: rounded(low * factor), mid: rounded(mid * factor), high: rounded(high * factor) };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Stores the summary; without one the stored one is deleted. */
export function keepSummary(
  store: Pick<DocumentStore, 'putDocument' | 'deleteDocuments'>,
  summary: CostsDocument | undefined,
): Promise<void> {
  return summary ? SUMMARY.put(store, NAME, summary) : SUMMARY.delete(store, [NAME]);
}

/** The last stored summary; null if there is none, or if another version wrote it. */
export async function readSummary(store: Pick<DocumentStore, 'document'>): Promise<CostsDocument | null> {
  return (await SUMMARY.read(store, NAME)) ?? null;
}
