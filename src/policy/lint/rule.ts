import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { textOf } from '../kinds/kinds.ts';
import type { Path } from '../read-yaml.ts';
import type { WrittenPolicy } from '../reader.ts';
import type { OpeningsCache, Period } from './openings.ts';
import type { Overlap } from './overlap.ts';
import type { WeekSpans } from './week-spans.ts';

/**
 * Every lint, by a code that never changes its meaning. docs/lints.md describes each; a test checks both ways. A lint that can be a
 * warning or an error is an error if it is certain: if a known compute is affected.
 */
export const LINTS = {
  'never-opens': 'warning',
  contradiction: 'warning',
  'no-value': 'warning',
  'probe-keeps-awake': 'error',
  'timeout-without-effect': 'warning',
  'costly-window': 'warning',
  'skipped-local-time': 'warning',
  'headroom-too-small': 'warning',
  'disjoint-limits': 'error or warning',
  'span-too-wide': 'warning',
  'minimum-limits-connections': 'warning',
  'idle-cannot-occur': 'warning',
  'overlapping-windows': 'warning',
  'fixed-offset-zone': 'warning',
  'critical-below-target': 'warning',
  'query-without-compute': 'warning',
  'freeze-keeps-awake': 'warning',
  'act-before-min-age': 'warning',
  'restart-rate': 'warning',
  'matches-nothing': 'warning',
  'plan-refuses': 'error or warning',
  'two-trials': 'error or warning',
  'not-compared': 'warning',
} as const;

export type LintCode = keyof typeof LINTS;

/** A lint's remark: about which policy, and where in its file. */
export interface Remark {
  code: LintCode;
  policy: Policy;
  /** A place within the policy, such as windows, 0, size; or, with `fromTop`, within its file. */
  at: Path;
  fromTop?: boolean;
  severity?: 'error' | 'warning';
  message: string;
}

/** The input of lints. */
export interface LintContext extends Period {
  /** In the order of the language. */
  policies: readonly Policy[];
  schedules: readonly SchedulePolicy[];
  overlap: Overlap;
  openings: OpeningsCache;
  weekSpans: WeekSpans;
  fleet?: readonly Compute[];
  plans: ReadonlyMap<string, AccountPlan>;
  /** The connections that a size gives, by account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  /** From the settings, as far as known: the defaults of policies. */
  disruption: PartialDisruption | undefined;
  sources: PolicySet['sources'];
  /** A policy as it stands in its file; undefined for one that was not read from a file. */
  written(policy: Policy): WrittenPolicy | undefined;
}

/** One lint: one file in this folder and one line in lint.ts. */
export type LintRule = (context: LintContext) => Iterable<Remark>;

/** A policy as other messages name it, with its place. */
export function nameOf({ written }: Pick<LintContext, 'written'>, policy: Policy): string {
  const found = written(policy);
  const place = found?.problemAt([...found.at, 'name'], 'value', '');
  const line = place?.line === undefined ? '' : ` (${place.file}:${place.line})`;
  return `"${policy.name}"${line}`;
}

/** A time of a policy, with its place. */
export interface WrittenTime {
  spec: TimeSpec;
  at: Path;
  written: WrittenPolicy | undefined;
  /** The text at that place. */
  text: unknown;
}

/** Every time that a policy names, with its place. */
export function* timesOf(policy: Policy, context: Pick<LintContext, 'written'>): Iterable<WrittenTime> {
  const written = context.written(policy);
  for (const { specs, at: all } of textOf(policy).times(policy)) {
    const valueAt = (path: Path) => written?.valueAt([...written.at, ...path]);
    const isList = Array.isArray(valueAt(all));
    for (const [index, spec] of specs.entries()) {
      const at = isList ? [...all, index] : all;
      yield { spec, at, written, text: valueAt(at) };
    }
  }
}
