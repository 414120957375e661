import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DASHBOARD_FILES, renderDashboard } from '../../scripts/render-dashboards.ts';

it.each(DASHBOARD_FILES)(
  'grafana/dashboards/%s is what its builder makes (regenerate with: npx vitest run generated --update)',
  async (file) => {
    await expect(renderDashboard(file)).toMatchFileSnapshot(`../../grafana/dashboards/${file}`);
  },
);

it('grafana/dashboards holds nothing else', () => {
  expect(readdirSync('grafana/dashboards').toSorted()).toEqual(DASHBOARD_FILES.toSorted());
});
