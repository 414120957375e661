import { NEVER_SUSPENDS, type Size } from '../../domain/compute.ts';
import {
  isAllowedSize,
  MAX_AUTOSCALING_CU,
  MAX_AUTOSCALING_SPAN_CU,
  nearestAllowedSizes,
} from '../../domain/compute-units.ts';
import { type HoldRequest, LONGEST_OVERRIDE_SECONDS } from '../../ports/operator.ts';

const MOST_OWNER = 80;
const MOST_REASON = 300;
const SHORTEST_TIMEOUT_SECONDS = 60;
const LONGEST_TIMEOUT_SECONDS = 7 * 86_400;

/** No control characters: what people write is shown in other people's terminals. */
const SHOWABLE = /^[^\p{Cc}\p{Cf}\p{Cs}]+$/u;

/** What every word of a person needs: who, why, until when. The first problem, or undefined. */
export function overrideProblem(request: { owner: string; reason: string; forSeconds: number }): string | undefined {
  const { owner, reason, forSeconds } = request;
  if (!(forSeconds >= 1 && forSeconds <= LONGEST_OVERRIDE_SECONDS)) {
    return 'it must last from 1 s to 90 days; what is to stay longer belongs in a policy';
  }
  return ownerProblem(owner) ?? textProblem('the reason', reason, MOST_REASON);
}

export function ownerProblem(owner: string): string | undefined {
  return textProblem('the owner', owner, MOST_OWNER);
}

function textProblem(what: string, text: string, most: number): string | undefined {
  if (text.trim() === '') return `${what} is missing`;
  if (text.length > most) return `${what} has more than ${most} characters`;
  return SHOWABLE.test(text) ? undefined : `${what} holds characters that can not be shown; write one plain line`;
}

export function holdProblem(request: HoldRequest): string | undefined {
  const { size, suspendTimeoutSeconds, freeze } = request;
  const names = size !== undefined || suspendTimeoutSeconds !== undefined;
  if (freeze && names) return 'a hold either freezes the compute as it is, or sets fields: leave one out';
  if (!freeze && !names) return 'a hold needs a size, a timeout, or freeze: it would change nothing';
  const problem = overrideProblem(request);
  return problem ?? (size && sizeProblem(size)) ?? timeoutProblem(suspendTimeoutSeconds);
}

function sizeProblem({ minCu, maxCu }: Size): string | undefined {
  const impossible = [minCu, maxCu].find((cu) => !isAllowedSize(cu));
  if (impossible !== undefined) {
    const nearest = nearestAllowedSizes(impossible);
    return `${impossible} CU is not a size; the nearest ${nearest.length === 1 ? 'is' : 'are'} ${nearest.join(' and ')}`;
  }
  if (minCu > maxCu) return `the minimum, ${minCu} CU, is above the maximum, ${maxCu} CU`;
  if (minCu === maxCu) return undefined;
  if (maxCu > MAX_AUTOSCALING_CU) return `a range ends at ${MAX_AUTOSCALING_CU} CU at most`;
  return maxCu - minCu > MAX_AUTOSCALING_SPAN_CU ? `a range spans ${MAX_AUTOSCALING_SPAN_CU} CU at most` : undefined;
}

function timeoutProblem(seconds: number | undefined): string | undefined {
  if (seconds === undefined || seconds === NEVER_SUSPENDS) return undefined;
  const fine = Number.isInteger(seconds) && seconds >= SHORTEST_TIMEOUT_SECONDS && seconds <= LONGEST_TIMEOUT_SECONDS;
  return fine ? undefined : 'a timeout is 60 to 604800 seconds, or -1 for never';
}
