import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { syntaxOf } from '../kinds/kinds.ts';
import type { Path } from '../read-yaml.ts';
import type { WrittenPolicy } from '../reader.ts';
import type { OpeningsCache, Period } from './openings.ts';
import type { Overlap } from './overlap.ts';
import type { WeekSpans } from './week-spans.ts';

/**
 * The severity of every lint by its code, which never changes its meaning. docs/lints.md describes each; a test compares both.
 * A lint that can be both is an error if it certainly affects a compute.
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
  'deadline-before-notice': 'warning',
  'restart-rate': 'warning',
  'matches-nothing': 'warning',
  'plan-refuses': 'error or warning',
  'two-trials': 'error or warning',
  'not-compared': 'warning',
} as const;

export type LintCode = keyof typeof LINTS;

export interface Remark {
  code: LintCode;
  policy: Policy;
  /** A path within the policy, such as windows, 0, size; with `fromTop`, within its file. */
  at: Path;
  fromTop?: boolean;
  severity?: 'error' | 'warning';
  message: string;
}

export interface LintContext extends Period {
  /** In the order of the set. */
  policies: readonly Policy[];
  /** False if files with problems have further policies: a lint that finds something missing can't be sure of it. */
  isWhole: boolean;
  schedules: readonly SchedulePolicy[];
  overlap: Overlap;
  openings: OpeningsCache;
  weekSpans: WeekSpans;
  /** By account. */
  plans: ReadonlyMap<string, AccountPlan>;
  /** By account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  /** The defaults of policies, from the settings. */
  disruption: PartialDisruption | undefined;
  /** `notify_before` of the settings, in milliseconds. */
  notifyBeforeMs: number | undefined;
  sources: PolicySet['sources'];
  /** Undefined for a policy that was not read from a file. */
  written(policy: Policy): WrittenPolicy | undefined;
}

/** One lint. It has a line in {@link LINTS} and in lint.ts; related lints may share a file. */
export type LintRule = (context: LintContext) => Iterable<Remark>;

/** The name of a policy with its place, for messages about another policy. */
export function nameOf({ written }: LintContext, policy: Policy): string {
  const found = written(policy);
  const place = found?.problemAt([...found.at, 'name'], 'value', '');
  const line = place?.line === undefined ? '' : ` (${place.file}:${place.line})`;
  return `"${policy.name}"${line}`;
}

/** A time of a policy with its place and its text in the file. */
export interface PlacedTime {
  spec: TimeSpec;
  at: Path;
  written: WrittenPolicy | undefined;
  text: unknown;
}

export function* timesOf(policy: Policy, context: LintContext): Iterable<PlacedTime> {
  const written = context.written(policy);
  for (const { specs, at: listAt } of syntaxOf(policy).times(policy)) {
    const valueAt = (path: Path) => written?.valueAt([...written.at, ...path]);
    const isList = Array.isArray(valueAt(listAt));
    for (const [index, spec] of specs.entries()) {
      const at = isList ? [...listAt, index] : listAt;
      yield { spec, at, written, text: valueAt(at) };
    }
  }
}
