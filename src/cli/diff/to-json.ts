import { findingDocument, totalsByFigure } from '../../app/recommend/finding-document.ts';
import type { Range } from '../../domain/estimate.ts';
import { settingsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import type { Span } from '../../domain/time/span.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { readyWavesJson } from '../forecast/fleet-waves.ts';
import { expectedJson } from '../forecast/month.ts';
import { rounded } from '../forecast/report.ts';
import { notPlannedJson } from '../not-planned.ts';
import { differenceOf, times } from '../ranges.ts';
import type { Comparison } from './compare.ts';

/** Instants in UTC, sizes in CU, timeouts in seconds; only computes that differ. */
export function diffJson(span: Span, comparison: Comparison) {
  const { readyWaves, changes, hours, dollars, expected, month, findings = [] } = comparison;
  const findingDocuments = findings.map(findingDocument);
  return {
    from: isoInstant(span.fromMs),
    to: isoInstant(span.toMs),
    policies: comparison.policies,
    computes_compared: comparison.computes,
    computes: changes.map(({ compute, differences, before, after }) => ({
      project_id: compute.projectId,
      compute_id: compute.computeId,
      differences: differences.map((difference) => ({
        from: isoInstant(difference.fromMs),
        to: isoInstant(difference.toMs),
        old: { ...settingsJson(difference.before), policies: difference.before.policies },
        new: { ...settingsJson(difference.after), policies: difference.after.policies },
      })),
      cu_hours: bothAndDelta(before.cuHours, after.cuHours),
      saves: findingDocuments
        .filter(({ compute_id: id }) => id === compute.computeId)
        .map(({ finding, figure, saves }) => ({ finding, figure, ...saves })),
      ...(before.price !== undefined && {
        usd: bothAndDelta(times(before.cuHours, before.price), times(after.cuHours, before.price)),
      }),
    })),
    cu_hours: bothAndDelta(hours.before, hours.after),
    cu_hours_expected: { old: expectedJson(expected.before), new: expectedJson(expected.after) },
    usd_month_expected: month?.usd
      ? {
          old: expectedJson(month.usd.old),
          new: expectedJson(month.usd.new),
          delta: expectedJson({ low: -month.usd.saved.high, mid: -month.usd.saved.mid, high: -month.usd.saved.low }),
        }
      : null,
    ...(dollars && { usd: bothAndDelta(dollars.before, dollars.after) }),
    saves: totalsByFigure(findingDocuments),
    ready_waves: { old: readyWavesJson(readyWaves.before, span), new: readyWavesJson(readyWaves.after, span) },
    ...notPlannedJson(comparison.notPlanned ?? []),
  };
}

function bothAndDelta(before: Range, after: Range) {
  return { old: rounded(before), new: rounded(after), delta: rounded(differenceOf(after, before)) };
}
