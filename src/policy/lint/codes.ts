/**
 * Everything that lint says, by a code that never changes its meaning. docs/lints.md describes each; a test checks both ways.
 * Where a lint can be both, it is an error if it is certain: if a compute is known to which it happens.
 */
export const LINTS = {
  'never-opens': 'warning',
  contradiction: 'warning',
  'no-opinion': 'warning',
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
  'matches-nothing': 'warning',
  'plan-refuses': 'error or warning',
  'not-compared': 'warning',
} as const;

export type LintCode = keyof typeof LINTS;
