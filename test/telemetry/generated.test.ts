import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { renderMetricsDoc } from '../../scripts/render-metrics.ts';

it('docs/metrics.md is up to date (npx tsx scripts/generate-docs.ts)', () => {
  expect(readFileSync('docs/metrics.md', 'utf8')).toBe(renderMetricsDoc());
});
