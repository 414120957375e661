import { countedComputes } from '../../common/names.ts';
import { isShowable } from '../../common/safe-text.ts';
import { NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { sizeProblems } from '../../domain/compute/compute-units.ts';
import {
  type ComputeBaseline,
  type HoldRequest,
  LONGEST_OVERRIDE_SECONDS,
  MAX_CHARACTERS,
  type OperatorError,
  type RestoreRequest,
} from '../../ports/operator.ts';

const SHORTEST_TIMEOUT_SECONDS = 60;
const LONGEST_TIMEOUT_SECONDS = 7 * 86_400;

/** Returns the first problem of the duration, owner or reason of a request; undefined if there is none. */
export function overrideProblem(request: { owner: string; reason: string; forSeconds: number }): string | undefined {
  const { owner, reason, forSeconds } = request;
  if (!(forSeconds >= 1 && forSeconds <= LONGEST_OVERRIDE_SECONDS)) {
    return 'it must last from 1 s to 90 days; what is to stay longer belongs in a policy';
  }
  return ownerProblem(owner) ?? textProblem('the reason', reason, MAX_CHARACTERS.reason);
}

export function ownerProblem(owner: string): string | undefined {
  return textProblem('the owner', owner, MAX_CHARACTERS.owner);
}

function textProblem(subject: string, text: string, maxCharacters: number): string | undefined {
  if (text.trim() === '') return `${subject} is missing`;
  if (text.length > maxCharacters) return `${subject} has more than ${maxCharacters} characters`;
  return isShowable(text) ? undefined : `${subject} holds characters that cannot be shown; write one plain line`;
}

export function holdProblem(request: HoldRequest): string | undefined {
  const { size, suspendTimeoutSeconds, freeze } = request;
  const setsFields = size !== undefined || suspendTimeoutSeconds !== undefined;
  if (freeze && setsFields) return 'a hold either freezes the compute as it is, or sets fields: leave one out';
  if (!freeze && !setsFields) return 'a hold needs a size, a timeout, or freeze: it would change nothing';
  return overrideProblem(request) ?? (size && sizeProblems(size)[0]) ?? timeoutProblem(suspendTimeoutSeconds);
}

/** Returns the problem of the first baseline that no compute can have; undefined if there is none. */
export function baselineProblem(baselines: readonly ComputeBaseline[]): string | undefined {
  for (const { compute_id, min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: seconds } of baselines) {
    const problem = sizeProblems({ minCu, maxCu })[0] ?? timeoutProblem(seconds);
    if (problem !== undefined) return `${compute_id}: ${problem}`;
  }
  return undefined;
}

function timeoutProblem(seconds: number | undefined): string | undefined {
  if (seconds === undefined || seconds === NEVER_SUSPENDS) return undefined;
  const isOk = Number.isInteger(seconds) && seconds >= SHORTEST_TIMEOUT_SECONDS && seconds <= LONGEST_TIMEOUT_SECONDS;
  return isOk ? undefined : 'a timeout is 60 to 604800 seconds, or -1 for never';
}

/** Refuses a command that would change `count` computes if another number was confirmed, or if `isRequired` and several are not confirmed. */
export function unconfirmed(
  { confirm }: Pick<RestoreRequest, 'confirm'>,
  count: number,
  isRequired = false,
): { ok: false; error: OperatorError } | undefined {
  if (confirm === 'any') return undefined;
  if (confirm === undefined ? !isRequired || count <= 1 : confirm === count) return undefined;
  const confirmed = confirm === undefined ? '' : ` now, and ${confirm} ${confirm === 1 ? 'was' : 'were'} confirmed`;
  const message = `this concerns ${countedComputes(count)}${confirmed}: nothing was changed; preview it, and confirm ${count}`;
  return { ok: false, error: { code: 'unconfirmed', message } };
}
