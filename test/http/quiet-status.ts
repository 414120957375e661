/** What a page shows, without its elements. */
export const textOf = (markup: unknown) => String(markup).replace(/<[^>]+>/g, '');

/** The status of a daemon that nobody has to look after. */
export const QUIET = {
  ...{ freezes: [], degraded: [], stopped_fights: [], computes: {}, budgets: [], policies: [], waiting: [] },
  ...{ staged: null, staged_teams: [], dead_notifications: [], readiness: null, unmet_headroom: [] },
  ...{ mode: 'enforce', set_hash: null, revision: null, costs: null, policy_problems: [] },
};
