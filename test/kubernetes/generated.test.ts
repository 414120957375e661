import { expect, it } from 'vitest';
import { renderPrometheusRule } from '../../scripts/render-prometheus-rule.ts';

it('the PrometheusRule holds the alerts of prometheus/rules (regenerate with: npx vitest run generated --update)', async () => {
  await expect(renderPrometheusRule()).toMatchFileSnapshot(
    '../../deploy/kubernetes/components/monitoring/prometheus-rule.yaml',
  );
});
