import type { AccountPlan } from '../../domain/compute/account-plan.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import type { Path } from '../read-yaml.ts';
import type { WrittenPolicy } from '../reader.ts';
import type { LintCode } from './codes.ts';
import type { OpeningsCache, Period } from './openings.ts';
import type { Overlap } from './overlap.ts';
import type { WeekSpans } from './week-spans.ts';

/** What a lint finds: about which policy, and where in its file. */
export interface Remark {
  code: LintCode;
  policy: Policy;
  /** A place within the policy, such as windows, 0, size; or, with `fromTop`, within its file. */
  at: Path;
  fromTop?: boolean;
  severity?: 'error' | 'warning';
  message: string;
}

/** What lints look at. */
export interface LintContext extends Period {
  /** In the order of the language. */
  policies: readonly Policy[];
  schedules: readonly SchedulePolicy[];
  overlap: Overlap;
  openings: OpeningsCache;
  weekSpans: WeekSpans;
  fleet?: readonly Compute[];
  plans: ReadonlyMap<string, AccountPlan>;
  /** How many connections a size gives, by account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
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
