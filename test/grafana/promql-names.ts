/** What a query names, found with Prometheus' own grammar. */
import { parser } from '@prometheus-io/lezer-promql';

export interface PromqlNames {
  /** Every metric, with the labels that its matchers name. */
  selectors: { metric: string; labels: string[] }[];
  /** Labels of `by`, `on`, `group_left` and their like. */
  grouping: string[];
  /** What the grammar does not understand. */
  errors: string[];
}

export function namesIn(expr: string): PromqlNames {
  const names: PromqlNames = { selectors: [], grouping: [], errors: [] };
  const parents: string[] = [];
  parser.parse(expr).iterate({
    enter(node) {
      const text = expr.slice(node.from, node.to);
      const parent = parents.at(-1);
      if (node.type.isError) names.errors.push(text);
      else if (node.name === 'VectorSelector') names.selectors.push({ metric: '', labels: [] });
      else if (node.name === 'Identifier' && parent === 'VectorSelector') lastOf(names).metric = text;
      else if (node.name === 'LabelName' && parent === 'GroupingLabels') names.grouping.push(text);
      else if (node.name === 'LabelName') lastOf(names).labels.push(text);
      parents.push(node.name);
    },
    leave: () => void parents.pop(),
  });
  return names;
}

function lastOf({ selectors }: PromqlNames): PromqlNames['selectors'][number] {
  const last = selectors.at(-1);
  if (last === undefined) throw new Error('a label before any selector');
  return last;
}
