/**
 * Every reason for an action or its absence. A code never changes its meaning. docs/reasons.md describes each code; a test compares the
 * two lists.
 */
export const REASONS = {
  window_open: 'an open window of the policy sets the field',
  otherwise: 'no open window sets the field, so the `otherwise` of the policy does',
  baseline: 'the policy restores what the compute had when ebb first saw it, or what a person has set since',
  control_group: 'a trial has withdrawn policies from the control group: the field is as it was before the trial',
  outranked: 'the policy sets the field, but another policy has precedence',
  unmatched: 'no policy selects the compute',
  selection_unknown:
    'whether the policy selects the compute depends on a name or role that could not be read; only a freeze applies then',
  no_value: 'no policy that selects the compute sets the field now',
  policies_unread: 'the policy files of its team cannot be read, so what they want is not known',
  baseline_unknown: 'the policy restores the baseline, which is not known yet',
  never_suspends: 'a fixed size above 16 CU never suspends, so the timeout is "never"',
  ready: 'a window with `ready` opens soon: until then the larger of the old and the new value is used',
  not_yet: 'a window with `ready` opens soon, but it raises nothing; it takes effect at its start',
  limited: 'limits clamp the value',
  within_limits: 'limits select the compute, and the value is within them',
  limits_conflict: 'these limits exclude those of a later policy, which wins',
  budget_step: 'a step of a budget has been reached, and its limits clamp the value',
  guard_floor: 'a guard has taken a lowering back: the field stays at least as it was before',
  hard_limit: 'hard limits clamp the value of headroom or of a hold',
  headroom: 'the maximum is raised so that enough connections stay free',
  headroom_met: 'enough connections are free',
  headroom_advised: 'more connections are needed; the policy only advises',
  headroom_over_limit: 'the need for connections exceeds a limit, and takes precedence over it',
  headroom_unmet: 'no allowed size gives the needed connections; consider the pooler',
  connections_unknown: 'the number of connections is unknown, so max_connections is not lowered',
  stabilising: 'the connections of the whole stabilisation window are not known yet, so max_connections is not lowered',
  hold: 'a person has set the field for a while',
  restore: 'a person has asked for the baseline, and no policy sets the field',
  min_above_max: 'the minimum was above the maximum, so it is lowered to the maximum',
  span_too_wide: 'the range was wider than the platform allows, so its maximum is lowered',
  late_effect: 'a change without an answer took effect late, so ebb changes the field again',
  restart_due: 'a window for restarts is open, and a restart is due',
  nothing_to_do: 'the compute already has the desired values',
  observe: 'nothing is written in observe mode',
  staged:
    'the policy set would disconnect many computes at once; its impact is being counted, or it waits for `ebb approve`',
  superseded:
    'another daemon of the group has loaded newer policies or settings; this one writes nothing until it has loaded them too',
  clock_off: "the machine's clock differs too much from the store clock; nothing is written until it is corrected",
  newly_discovered:
    'ebb has just discovered this active compute, or has just begun to enforce; changes that would disconnect clients wait for sleep or the next boundary',
  renamed:
    'the project has got another name by which a team selects it; that is reported, and changes wait for the next boundary',
  frozen: 'a freeze is active: nothing is written',
  not_loaded:
    'the policies of its team are staged or cannot be read, and no others of the team are in effect: nothing is written',
  held: 'a person holds the compute as it is',
  reading_lags: 'the control API still shows what a field was before its last change; it is read again',
  manual_change: 'a person has changed the field; that is respected for a while',
  fight_stopped: 'ebb and somebody else changed the field back and forth; it is left alone until released',
  cooldown: 'the compute was restarted by a change a short while ago',
  waiting_for_idle: 'the change would disconnect clients; it waits until the compute sleeps',
  waiting_for_quiet: 'the change would disconnect clients; it waits until few are connected',
  deadline: 'no safe window before the deadline; the change is skipped until the next boundary',
  ends_soon:
    'a lowering, or a late raise, would restart the compute, and its next boundary would undo it within two minutes; it waits for that boundary',
  trial_flip:
    'the unit has changed its arm of a trial; a trial adds no restart, so the size waits for sleep or for the next change without it',
  budget_reset:
    'a step of a budget has ended; that restarts nothing, so the size waits for sleep or for its next boundary',
  guard:
    'a guard finds the compute bad, or its verdict is unknown: a lowering that would disconnect clients waits until it is healthy',
  at_once: 'the limit of concurrent restarts of the policy is reached',
  at_most: 'the limit of restarts of the policy within a time is reached',
  operation_running: 'an operation runs in the project; the control API refuses changes until it ends',
  answer_unknown: 'a change was sent and no clear answer came; the compute is read before anything else is sent',
  retry_later: 'the last attempt failed; the next one waits',
  degraded: 'the change failed or was refused repeatedly; it is retried after an hour',
} as const;

export type ReasonCode = keyof typeof REASONS;

/** The reason for an action or its absence: a stable code, the policy concerned, and a sentence for people. */
export interface Reason {
  code: ReasonCode;
  policy?: string;
  message: string;
}
