import type { AccountPlan } from '../../domain/account-plan.ts';
import { DEFAULT_SUSPEND_TIMEOUT_SECONDS, NEVER_SUSPENDS } from '../../domain/compute.ts';
import type { LimitsPolicy, Policy, SchedulePolicy } from '../../domain/policy.ts';
import { formatSuspendTimeout } from '../../domain/settings-text.ts';
import type { Path } from '../read-yaml.ts';
import { globsMeet } from './glob-overlap.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';
import { wantedBy } from './schedules.ts';

/** What a plan takes. The scale plan takes whatever the language has. */
interface Allowed {
  maxCu: number;
  timeouts: readonly number[];
  shownTimeouts: string;
}

const ALLOWED: Readonly<Record<AccountPlan, Allowed | undefined>> = {
  free: { maxCu: 2, timeouts: [DEFAULT_SUSPEND_TIMEOUT_SECONDS], shownTimeouts: '5m' },
  launch: { maxCu: 16, timeouts: [DEFAULT_SUSPEND_TIMEOUT_SECONDS, NEVER_SUSPENDS], shownTimeouts: '5m or never' },
  scale: undefined,
};

/** What the plan of an account refuses: an error where it is certain that the policy selects something there. */
export const planRefuses: LintRule = function* (context) {
  for (const policy of context.policies) {
    for (const { account, plan, isCertain } of accountsOf(policy, context)) {
      const allowed = ALLOWED[plan];
      for (const { at, message } of allowed ? refusals(policy, allowed) : []) {
        const severity = isCertain ? 'error' : 'warning';
        const where = `the ${plan} plan of account ${account}`;
        yield { code: 'plan-refuses', policy, at, severity, message: `${where} ${message}` } satisfies Remark;
      }
    }
  }
};

/** The accounts with a plan in which a policy may select something; certain if it does, or says so itself. */
function* accountsOf(policy: Policy, { plans, overlap }: LintContext) {
  const selected = overlap.computesOf(policy);
  const { accounts } = policy.select;
  for (const [account, plan] of plans) {
    const isMeant = accounts === undefined || matches(accounts, account);
    const isSelected = selected ? selected.some((compute) => compute.account === account) : isMeant;
    if (isSelected)
      yield { account, plan, isCertain: selected !== undefined || accounts !== undefined || plans.size === 1 };
  }
}

function matches(globs: readonly string[], name: string): boolean {
  const isMatched = (glob: string) => globsMeet(glob, name);
  const excludes = globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1));
  return globs.some((glob) => !glob.startsWith('!') && isMatched(glob)) && !excludes.some(isMatched);
}

interface Refusal {
  at: Path;
  message: string;
}

function refusals(policy: Policy, allowed: Allowed): Refusal[] {
  if (policy.kind === 'schedule') return refusalsOfSchedule(policy, allowed);
  if (policy.kind === 'limits') return refusalsOfLimits(policy, allowed);
  if (policy.kind !== 'headroom' || policy.maxCu <= allowed.maxCu) return [];
  return [{ at: ['max_size'], message: tooLarge(policy.maxCu, allowed) }];
}

function refusalsOfSchedule(policy: SchedulePolicy, allowed: Allowed): Refusal[] {
  return wantedBy(policy).flatMap(({ values: { size, suspendTimeoutSeconds: seconds }, at }) => [
    ...(size && size.maxCu > allowed.maxCu ? [{ at: [...at, 'size'], message: tooLarge(size.maxCu, allowed) }] : []),
    ...(seconds !== undefined && !allowed.timeouts.includes(seconds)
      ? [{ at: [...at, 'suspend_after'], message: notThisTimeout(seconds, allowed) }]
      : []),
  ]);
}

/** A bound is sent where it cuts off a value that the plan takes. */
function refusalsOfLimits({ size, suspendTimeout }: LimitsPolicy, allowed: Allowed): Refusal[] {
  const { minSeconds = 0, maxSeconds = NEVER_SUSPENDS } = suspendTimeout ?? {};
  const sent = allowed.timeouts
    .map((seconds) => (length(seconds) < length(minSeconds) ? minSeconds : seconds))
    .map((seconds) => (length(seconds) > length(maxSeconds) ? maxSeconds : seconds))
    .find((seconds) => !allowed.timeouts.includes(seconds));
  return [
    ...(size?.minCu !== undefined && size.minCu > allowed.maxCu
      ? [{ at: ['size'], message: tooLarge(size.minCu, allowed) }]
      : []),
    ...(sent === undefined ? [] : [{ at: ['suspend_after'], message: notThisTimeout(sent, allowed) }]),
  ];
}

function length(seconds: number): number {
  return seconds === NEVER_SUSPENDS ? Number.POSITIVE_INFINITY : seconds;
}

function tooLarge(cu: number, allowed: Allowed): string {
  return `refuses ${cu} CU; ${allowed.maxCu} CU is its largest size`;
}

function notThisTimeout(seconds: number, allowed: Allowed): string {
  return `refuses suspend_after ${formatSuspendTimeout(seconds)}; it takes ${allowed.shownTimeouts}`;
}
