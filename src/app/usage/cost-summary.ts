/** This month's cost as all pages and commands show it. The leader stores it for the other daemons and for commands. */
import { type Estimate, mapEstimate, ZERO } from '../../domain/estimate.ts';
import { NOT_READ } from '../../domain/policy/owners.ts';
import { type Amount, figureOfSum, times } from '../../domain/recommend/saving.ts';
import { roundToSum, sum, toHundredths } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { inCents } from '../../domain/usage/bill.ts';
import { type Projection, sumOfProjections } from '../../domain/usage/projection.ts';
import type { CostsDocument, OwnerCostsDocument } from '../../ports/cost-documents.ts';
import { sharedDocument } from '../shared-documents.ts';
import type { Counterfactual } from './counterfactual.ts';
import type { MonthCosts } from './month-costs.ts';

export const {
  read: readSummary,
  keep: keepSummary,
  fill: fillSummary,
} = sharedDocument<CostsDocument>('costs', 'month', 1);

/** The sum over all organizations; undefined if no usage is known. */
export function costSummary(all: readonly MonthCosts[], nowMs: number): CostsDocument | undefined {
  const [first] = all;
  if (first === undefined) return undefined;
  const ownerCosts = all.flatMap(({ account, owners: ofAccount }) => ofAccount.map((one) => ({ ...one, account })));
  const cents = inCents(ownerCosts);
  const hours = roundToSum(
    ownerCosts.map(({ cuSeconds }) => cuSeconds / 3600),
    2,
  );
  const owners = ownerCosts.map((part, index) => ({
    ...ownerDocument(part),
    cu_hours: hours[index] ?? 0,
    usd: cents[index] ?? null,
  }));
  const { month } = first;
  const unread = unreadProjects(all);
  return {
    at: isoInstant(nowMs),
    from: isoInstant(month.fromMs),
    to: isoInstant(month.toMs),
    known_until: isoInstant(Math.min(...all.map(({ knownUntilMs }) => knownUntilMs))),
    owners: owners.toSorted((a, b) => b.cu_hours - a.cu_hours),
    // Sums unrounded values, so that they equal those of `ebb cost`.
    total: {
      cu_hours: toHundredths(sum(ownerCosts.map(({ cuSeconds }) => cuSeconds)) / 3600),
      usd: usdSum(ownerCosts.map(({ usd }) => usd)),
      unknown_hours: sum(owners.map(({ unknown_hours }) => unknown_hours)),
      projected_usd: projectedSum(all.map(({ total }) => total.projectedUsd ?? null)),
      ...notProjected(all.map(({ total }) => total.notProjected)),
    },
    ...(unread > 0 && { unread_projects: unread }),
    would_have_saved: savedDocument(all),
  };
}

/** The number of projects with usage whose owner is not known yet. */
export function unreadProjects(all: readonly Pick<MonthCosts, 'lines'>[]): number {
  const unread = all.flatMap(({ lines }) => lines).filter(({ name }) => name === NOT_READ);
  return new Set(unread.map(({ projectId }) => projectId)).size;
}

/** An owner's part of a summary, without the saving that enforcing would have made, which is stored in total only. */
export function summaryOfOwner(summary: CostsDocument, owner: string): CostsDocument {
  const owners = summary.owners.filter((one) => one.owner === owner);
  const total = {
    cu_hours: toHundredths(sum(owners.map(({ cu_hours }) => cu_hours))),
    usd: usdSum(owners.map(({ usd }) => usd ?? undefined)),
    unknown_hours: sum(owners.map(({ unknown_hours }) => unknown_hours)),
    projected_usd: projectedSum(owners.map(({ projected_usd }) => projected_usd)),
    ...notProjected(owners.map(({ not_projected }) => not_projected)),
  };
  return { ...summary, owners, total, would_have_saved: null };
}

function savedDocument(all: readonly MonthCosts[]): CostsDocument['would_have_saved'] {
  const parts = all.flatMap(({ counterfactual = [] }) => counterfactual);
  if (parts.length === 0) return null;
  const sumOf = (pick: (part: Counterfactual) => number) => toHundredths(sum(parts.map(pick)));
  const estimateOf = (pick: (part: Counterfactual) => Estimate) => ({
    low: sumOf((part) => pick(part).low),
    mid: sumOf((part) => pick(part).mid),
    high: sumOf((part) => pick(part).high),
  });
  const cuHours = (pick: (part: Counterfactual) => Amount) =>
    estimateOf((part) => times(pick(part), 1 / 3600).cuSeconds);
  const isPriced = parts.every(({ saved }) => saved.usd !== undefined);
  return {
    figure: 'replayed',
    computes: sumOf(({ computes }) => computes),
    used_cu_hours: sumOf(({ used }) => used.cuSeconds.mid / 3600),
    cu_hours: cuHours(({ saved }) => saved),
    parts: [
      { part: 'sizes', figure: 'replayed', cu_hours: cuHours(({ bySizes }) => bySizes) },
      {
        part: 'timeouts',
        figure: figureOfSum(parts.map(({ timeoutsFigure }) => timeoutsFigure)),
        cu_hours: cuHours(({ byTimeouts }) => byTimeouts),
      },
    ],
    usd: isPriced ? estimateOf(({ saved }) => saved.usd ?? ZERO) : null,
  };
}

/** An owner's costs without the figures that are rounded together with those of other owners. */
function ownerDocument(
  costs: MonthCosts['owners'][number] & { account: string },
): Omit<OwnerCostsDocument, 'cu_hours' | 'usd'> {
  const { account, name: owner, unknownHours, projectedUsd, projectedCuSeconds, anomaly } = costs;
  return {
    account,
    owner,
    unknown_hours: unknownHours,
    projected_usd: projectedUsd ? mapEstimate(projectedUsd, toHundredths) : null,
    ...notProjected([costs.notProjected]),
    projected_cu_hours: projectedCuSeconds
      ? mapEstimate(projectedCuSeconds, (cuSeconds) => toHundredths(cuSeconds / 3600))
      : null,
    anomaly: anomaly
      ? {
          day: isoInstant(anomaly.dayMs).slice(0, 10),
          cu_hours: toHundredths(anomaly.used / 3600),
          ordinary_cu_hours: toHundredths(anomaly.ordinary / 3600),
        }
      : null,
  };
}

/** Null if a part is unknown. */
function usdSum(parts: readonly (number | undefined)[]): number | null {
  const known = parts.filter((part) => part !== undefined);
  return known.length < parts.length ? null : toHundredths(sum(known));
}

/** Null if a part is unknown, or there is none. */
function projectedSum(parts: readonly (Projection | null)[]): Projection | null {
  const known = parts.filter((part) => part !== null);
  return known.length < parts.length || known.length === 0 ? null : mapEstimate(sumOfProjections(known), toHundredths);
}

/** The reason why a sum is not projected: that of the first part without a projection. */
function notProjected(
  reasons: readonly OwnerCostsDocument['not_projected'][],
): Pick<OwnerCostsDocument, 'not_projected'> {
  const reason = reasons.find((one) => one !== undefined);
  return reason === undefined ? {} : { not_projected: reason };
}
