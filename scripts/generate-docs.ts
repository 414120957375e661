/** Writes every document that is made of declarations in the code. */
import { writeFileSync } from 'node:fs';
import { renderMetricsDoc } from './render-metrics.ts';
import { renderExampleYaml, renderSettingsDoc } from './render-settings.ts';

writeFileSync('docs/metrics.md', renderMetricsDoc());
writeFileSync('docs/settings.md', renderSettingsDoc());
writeFileSync('ebb.example.yaml', renderExampleYaml());
