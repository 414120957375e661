import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { policyJsonSchema } from '../../src/policy/json-schema.ts';
import { VALID, valid } from './policy-text.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const SAMPLES = ['office-hours', 'night-scale-to-zero', 'connection-headroom'].map((name) => `policies/${name}.yaml`);

describe('the JSON Schema of policies', () => {
  it('that is committed is the one that the code generates (npx tsx scripts/write-policy-schema.ts)', () => {
    expect(JSON.parse(read('schema/policies.schema.json'))).toEqual(policyJsonSchema());
  });

  it('accepts what the parser accepts and refuses unknown keys', () => {
    const validate = new Ajv({ strict: false }).compile(policyJsonSchema() as object);
    for (const text of [VALID, ...SAMPLES.map(read)]) expect(validate(parseYaml(text)), text).toBe(true);
    expect(validate(parseYaml(valid('owner', 'ownr')))).toBe(false);
    expect(validate(parseYaml(valid('select', 'selekt')))).toBe(false);
  });

  it('is named by every sample for editors', () => {
    for (const path of SAMPLES)
      expect(read(path)).toMatch(/^# yaml-language-server: \$schema=\.\.\/schema\/policies\.schema\.json\n/);
  });
});
