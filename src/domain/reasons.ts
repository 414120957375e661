/**
 * Every reason that ebb gives for what it does or leaves, by a code that never changes its meaning.
 * docs/reasons.md describes each; a test checks both ways.
 */
export const REASONS = {
  window_open: 'an open window of the policy decides the field',
  otherwise: 'no window of the policy is open, so its `otherwise` decides the field',
  baseline: 'the policy gives back what the compute had when ebb first saw it',
  outranked: 'the policy has an opinion on the field, but another one comes first',
  unmatched: 'no policy selects the compute',
  no_opinion: 'the policies that select the compute say nothing about the field now',
  baseline_unknown: 'the policy gives back the baseline, which is not known yet',
  never_suspends: 'a fixed size above 16 CU never suspends, so the timeout is "never"',
  nothing_to_do: 'the compute already has what is wanted',
  observe: 'nothing is written in observe mode',
  first_sight:
    'ebb has just met this active compute; what would disconnect clients waits for sleep or the next boundary',
  operation_running: 'an operation runs in the project; the control API refuses changes until it ends',
  answer_unknown: 'a change was sent and its answer did not arrive; the compute is read before anything is sent again',
  retry_later: 'the last attempt failed; the next one waits a while',
  degraded: 'the change failed or was refused repeatedly; it is tried again after a long wait',
} as const;

export type ReasonCode = keyof typeof REASONS;

/** Why something is done or left: a stable code, the policy concerned, and a sentence for a person. */
export interface Reason {
  code: ReasonCode;
  policy?: string;
  message: string;
}
