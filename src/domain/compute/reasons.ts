/**
 * Every reason that ebb gives for what it does or leaves, by a code that never changes its meaning.
 * docs/reasons.md describes each; a test checks both ways.
 */
export const REASONS = {
  window_open: 'an open window of the policy decides the field',
  otherwise: 'no open window decides the field, so the `otherwise` of the policy does',
  baseline: 'the policy gives back what the compute had when ebb first saw it',
  control_group: 'a trial has withdrawn policies from the control group: the field is as it was before the trial',
  outranked: 'the policy has an opinion on the field, but another one comes first',
  unmatched: 'no policy selects the compute',
  selection_unknown:
    'whether the policy selects the compute depends on a name or role that could not be read; only a freeze counts then',
  no_value: 'the policies that select the compute say nothing about the field now',
  baseline_unknown: 'the policy gives back the baseline, which is not known yet',
  never_suspends: 'a fixed size above 16 CU never suspends, so the timeout is "never"',
  ready: 'the window opens soon and is to be in force by then: the larger of the old and the new value holds',
  not_yet: 'the window opens soon, but it raises nothing; it decides from its start on',
  limited: 'limits clamp what was wanted',
  within_limits: 'limits select the compute, and what was wanted is within them',
  limits_conflict: 'these limits exclude those of a later policy, which wins',
  hard_limit: 'hard limits clamp what headroom or a person wanted',
  headroom: 'the maximum is raised so that enough connections stay free',
  headroom_met: 'enough connections are free',
  headroom_advised: 'more connections are needed; the policy only advises',
  headroom_over_limit: 'the connections that are needed go beyond a limit; they come first',
  headroom_unmet: 'the size cannot give the connections that are needed; look at the pooler',
  connections_unknown: 'nothing is known of the connections, so max_connections is not lowered',
  stabilising: 'the connections of the whole stabilisation window are not known yet, so max_connections is not lowered',
  hold: 'a person has set the field for a while',
  restore: 'a person has asked for what the compute had before ebb, and no policy has an opinion',
  min_above_max: 'the minimum was above the maximum, so it is lowered to the maximum',
  span_too_wide: 'the range was wider than the platform allows, so its maximum is lowered',
  restart_due: 'a window for restarts is open, and a restart is due',
  nothing_to_do: 'the compute already has what is wanted',
  observe: 'nothing is written in observe mode',
  staged: 'the policy set would disconnect many computes at once; it waits to be weighed, or for `ebb approve`',
  superseded:
    'another daemon of the group has loaded a newer policy set; this one writes nothing until it has loaded it too',
  clock_off: "the machine's clock is too far from the time of the group; nothing is written until it is set right",
  newly_discovered:
    'ebb has just met this active compute; what would disconnect clients waits for sleep or the next boundary',
  frozen: 'a freeze is in force: nothing is written',
  held: 'a person holds the compute as it is',
  manual_change: 'a person has changed the field; that is respected for a while',
  fight_stopped: 'ebb and somebody else changed the field back and forth; it is left alone until released',
  cooldown: 'the compute was restarted by a change a short while ago',
  waiting_for_idle: 'the change would disconnect clients; it waits until the compute sleeps',
  waiting_for_quiet: 'the change would disconnect clients; it waits until few are connected',
  deadline: 'the moment for the change did not come in time; it is skipped until the next boundary',
  trial_flip:
    'the unit has changed its arm of a trial; a trial adds no restart, so the size waits for sleep or for the next change without it',
  at_once: 'as many computes of the policy as may be are being restarted',
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
