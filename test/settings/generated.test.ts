import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { renderExampleYaml, renderSettingsDoc } from '../../scripts/render-settings.ts';
import { SETTINGS, settingsJsonSchema } from '../../src/settings/declarations.ts';
import { settingsSchema } from '../../src/settings/schema.ts';
import { readSettings } from '../../src/settings/settings.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-example-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function readable(result: ReturnType<typeof readSettings>): unknown {
  return JSON.parse(JSON.stringify(result));
}

describe('what is generated from the settings', () => {
  it('says what the declarations say (regenerate with: npx vitest run generated --update)', async () => {
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

describe('the JSON Schema of ebb.yaml', () => {
  it('that is committed is the one that the code generates (npx tsx scripts/write-schemas.ts)', () => {
    expect(JSON.parse(readFileSync('schema/settings.schema.json', 'utf8'))).toEqual(settingsJsonSchema());
  });

  it('accepts the example with every setting, and refuses unknown settings and values', () => {
    const validate = new Ajv({ strict: false }).compile(settingsJsonSchema());
    const example = readFileSync('ebb.example.yaml', 'utf8');
    expect(validate(parseYaml(example)), JSON.stringify(validate.errors)).toBe(true);
    expect(validate(parseYaml(example.replace(/^# (\w+: \S+)$/gm, '$1'))), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ mode: 'observe', polices: 'policies' })).toBe(false);
    expect(validate({ mode: 'enforced' })).toBe(false);
  });

  it('says of every setting what it means', () => {
    const { properties } = settingsJsonSchema() as { properties: Record<string, { description: string }> };
    for (const [name, { help }] of Object.entries(SETTINGS)) expect(properties[name]?.description).toBe(help);
  });
});
