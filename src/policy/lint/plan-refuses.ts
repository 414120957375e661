import {
  DEFAULT_SUSPEND_TIMEOUT_SECONDS,
  NEVER_SUSPENDS,
  timeoutLength,
  timeoutOfLength,
} from '../../domain/compute/compute.ts';
import { formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { WrittenSetting } from '../kinds/kind.ts';
import { syntaxOf } from '../kinds/kinds.ts';
import type { Path } from '../read-yaml.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';
import { maySelectIn } from './selector-overlap.ts';

interface Allowed {
  maxCu: number;
  timeouts: readonly number[];
}

/** The sizes and timeouts that a plan accepts. The scale plan accepts all that policies can ask for. */
const ALLOWED: Readonly<Record<AccountPlan, Allowed | undefined>> = {
  free: { maxCu: 2, timeouts: [DEFAULT_SUSPEND_TIMEOUT_SECONDS] },
  launch: { maxCu: 16, timeouts: [DEFAULT_SUSPEND_TIMEOUT_SECONDS, NEVER_SUSPENDS] },
  scale: undefined,
};

/** Values that the plan of an account refuses: an error if the policy certainly selects something in the account. */
export const planRefuses: LintRule = function* (context) {
  for (const policy of context.policies) {
    for (const { account, plan, isCertain } of accountsOf(policy, context)) {
      const allowed = ALLOWED[plan];
      for (const { at, message } of allowed ? refusals(policy, allowed) : []) {
        const severity = isCertain ? 'error' : 'warning';
        const subject = `the ${plan} plan of account ${account}`;
        yield { code: 'plan-refuses', policy, at, severity, message: `${subject} ${message}` } satisfies Remark;
      }
    }
  }
};

/** The accounts with a known plan in which a policy may select something. */
function* accountsOf(policy: Policy, { plans, profiles, overlap }: LintContext) {
  const selected = overlap.computesOf(policy);
  // Every account of the settings has a profile, but perhaps no plan.
  const isOnlyAccount = plans.size === 1 && profiles.size <= 1;
  const isCertain = selected !== undefined || policy.select.accounts !== undefined || isOnlyAccount;
  for (const [account, plan] of plans) {
    const isSelected = selected
      ? selected.some((compute) => compute.account === account)
      : maySelectIn(policy.select, account);
    if (isSelected) yield { account, plan, isCertain };
  }
}

function refusals(policy: Policy, allowed: Allowed): { at: Path; message: string }[] {
  return syntaxOf(policy)
    .settings(policy)
    .flatMap((setting) => {
      const message = setting.field === 'size' ? refusedSize(setting.maxCu, allowed) : refusedTimeout(setting, allowed);
      return message === undefined ? [] : [{ at: setting.at, message }];
    });
}

function refusedSize(cu: number, allowed: Allowed): string | undefined {
  return cu > allowed.maxCu ? `refuses ${cu} CU; ${allowed.maxCu} CU is its largest size` : undefined;
}

/** The problem of bounds that move a timeout of the plan to one that the plan refuses; undefined if they move none. */
function refusedTimeout(
  { minSeconds, maxSeconds }: Extract<WrittenSetting, { field: 'suspend_after' }>,
  allowed: Allowed,
): string | undefined {
  const [shortest, longest] = [timeoutLength(minSeconds), timeoutLength(maxSeconds)];
  const sent = allowed.timeouts
    .map((seconds) => timeoutOfLength(Math.min(Math.max(timeoutLength(seconds), shortest), longest)))
    .find((seconds) => !allowed.timeouts.includes(seconds));
  if (sent === undefined) return undefined;
  const accepted = allowed.timeouts.map(formatSuspendTimeout).join(' or ');
  return `refuses suspend_after ${formatSuspendTimeout(sent)}; it takes ${accepted}`;
}
