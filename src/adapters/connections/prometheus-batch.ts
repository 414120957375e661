/** A query for many computes at once; the label says which series is whose. */
export interface ManyQuery {
  label: string;
  textFor(computeIds: readonly string[]): string;
}

/** One sum over one metric; strings in its matchers without quotes or escapes inside. */
const SUM = /^\s*sum\s*\(\s*([a-zA-Z_:][\w:]*)\s*\{((?:[^"{}]|"[^"\\]*")*)\}\s*\)\s*$/;
const BY_COMPUTE = /(^|[,\s])([a-zA-Z_]\w*)\s*=\s*"\$compute"/;

/**
 * Undefined unless the query is a plain sum in which the compute stands in one matcher and nothing else is filled in: only then the
 * same sum by that label means the same.
 */
export function askForMany(query: string): ManyQuery | undefined {
  const [, metric, matchers = ''] = SUM.exec(query) ?? [];
  const [, , label] = BY_COMPUTE.exec(matchers) ?? [];
  if (metric === undefined || label === undefined || query.split('$').length !== 2) return undefined;
  return {
    label,
    textFor: (computeIds) => {
      const anyOf = `${label}=~"${computeIds.join('|')}"`;
      return `sum by (${label}) (${metric}{${matchers.replace(BY_COMPUTE, (_whole, before: string) => before + anyOf)}})`;
    },
  };
}
