import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { renderExampleYaml, renderSettingsDoc } from '../../scripts/render-settings.ts';
import { SETTINGS } from '../../src/settings/declarations.ts';
import { settingsSchema } from '../../src/settings/schema.ts';
import { readSettings } from '../../src/settings.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-example-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function readable(result: ReturnType<typeof readSettings>): unknown {
  return JSON.parse(JSON.stringify(result));
}

describe('what is generated from the settings', () => {
  it('says what the declarations say (write it anew with: npx vitest run generated --update)', async () => {
    await expect(renderSettingsDoc()).toMatchFileSnapshot('../../docs/settings.md');
    await expect(renderExampleYaml()).toMatchFileSnapshot('../../ebb.example.yaml');
  });

  it('covers every setting that the schema knows', () => {
    expect(Object.keys(SETTINGS).sort()).toEqual(Object.keys(settingsSchema.shape).sort());
  });

  it('is an example that changes nothing when it is copied', () => {
    const defaults = readable(readSettings({ env: {}, cwd }));
    copyFileSync('ebb.example.yaml', join(cwd, 'ebb.yaml'));
    expect(readable(readSettings({ env: {}, cwd }))).toEqual(defaults);
  });

  it('is an example whose commented lines can be used too', () => {
    const uncommented = readFileSync('ebb.example.yaml', 'utf8').replace(/^# (\w+: \S+)$/gm, '$1');
    writeFileSync(join(cwd, 'all.yaml'), uncommented);
    const result = readSettings({ env: {}, cwd, configFile: 'all.yaml' });
    expect(result).toMatchObject({
      ok: true,
      settings: { group: 'production', accounts: [{ apiKey: { from: 'file' } }] },
    });
  });
});
