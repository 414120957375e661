import { expect, it } from 'vitest';
import { renderMetricsDoc } from '../../scripts/render-metrics.ts';

it('docs/metrics.md says what the table of metrics says (regenerate with: npx vitest run generated --update)', async () => {
  await expect(renderMetricsDoc()).toMatchFileSnapshot('../../docs/metrics.md');
});
