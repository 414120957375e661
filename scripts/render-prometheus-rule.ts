import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';

const RULES = 'prometheus/rules/ebb.yml';

/** The alerts of prometheus/rules as the Prometheus operator's resource. */
export function renderPrometheusRule(): string {
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'ebb' },
    spec: parse(readFileSync(RULES, 'utf8')),
  };
  return `# Generated from ${RULES} by \`npx vitest run generated --update\`.\n${stringify(rule, { lineWidth: 0 })}`;
}
