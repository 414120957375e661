import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { COMPUTE_SIZES_CU } from '../../src/domain/compute/compute-units.ts';
import { policyJsonSchema } from '../../src/policy/json-schema.ts';
import { parse, VALID, valid } from './policy-text.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const SAMPLES = ['office-hours', 'night-scale-to-zero', 'connection-headroom'].map((name) => `policies/${name}.yaml`);

describe('the JSON Schema of policies', () => {
  it('that is committed is the one that the code generates (npx tsx scripts/write-schemas.ts)', () => {
    expect(JSON.parse(read('schema/policies.schema.json'))).toEqual(policyJsonSchema());
  });

  it('accepts what the parser accepts and refuses unknown keys', () => {
    const validate = new Ajv({ strict: false }).compile(policyJsonSchema() as object);
    for (const text of [VALID, ...SAMPLES.map(read)]) expect(validate(parseYaml(text)), text).toBe(true);
    expect(validate(parseYaml(valid('owner', 'ownr')))).toBe(false);
    expect(validate(parseYaml(valid('select', 'selekt')))).toBe(false);
  });

  const accepts = (() => {
    const validate = new Ajv({ strict: false, formats: { uri: true } }).compile(policyJsonSchema() as object);
    return (text: string) => validate(parseYaml(text));
  })();

  it.each([
    ['Europe/Berlin', 'Europe/Berln'],
    ['Europe/Berlin', 'IST'],
    ['1-4', '3.5'],
    ['1-4', '17-57'],
    ['1-4', '4-1'],
    ['1-4', '1-10'],
    ['1-4', '16-20'],
    ['1-4', '{ min: 1, max: 3.5 }'],
    ['never', '5 min'],
    ['never', '300'],
    ['never', 'm'],
    ['Mon-Fri 08:00-18:30', 'Monday 08:00-18:30'],
    ['Mon-Fri 08:00-18:30', '8-18'],
    ['Mon-Fri 08:00-18:30', 'Mon 08:60-25:00'],
    ['Mon-Fri 08:00-18:30', '2026-13-24/2026-12-27'],
    ['Mon-Fri 08:00-18:30', '{ cron: "0 4 * *", for: 2h }'],
    ['Mon-Fri 08:00-18:30', '{ cron: "0 4 * * *", for: 2 }'],
    ['Mon-Fri 08:00-18:30', '{ cron: "0 4 * * *", for: 2 hours }'],
    ['Mon-Fri 08:00-18:30', '{ cron: "0 4 * * *", for: 2h, zone: Berlin }'],
  ])('marks what the parser refuses: for %s, %s', (part, wrong) => {
    expect(parse(valid(part, wrong)).ok).toBe(false);
    expect(accepts(valid(part, wrong))).toBe(false);
  });

  it('accepts every size, range, duration, time and zone that the parser accepts', () => {
    const cu = fc.constantFrom(...COMPUTE_SIZES_CU, 3.5, 17, 58);
    const number = fc.tuple(cu, fc.constantFrom('', '.0', '0')).map(([size, end]) => `${size}${end}`);
    const dash = fc.constantFrom('-', ' - ', '- ');
    const sizes = fc.oneof(
      number,
      fc.tuple(number, dash, number).map((parts) => `"${parts.join('')}"`),
    );
    const day = fc.constantFrom('Mon', 'Wed', 'Sun', 'mon');
    const clock = fc.constantFrom('00:00', '08:30', '23:59', '24:00', '24:01', '8:00');
    const zone = fc.constantFrom('', ' UTC', ' Asia/Tokyo', ' Etc/GMT+5', ' Mars/Base');
    const days = fc.oneof(
      day,
      fc.tuple(day, day).map((two) => two.join('-')),
      fc.tuple(day, day).map((two) => two.join(', ')),
    );
    const instants = fc.constantFrom(
      '2026-12-24',
      '2026-12-24T08:00',
      '2027-01-02T00:00:00.250Z',
      '2027-01-01T00:00:00+14:00',
    );
    const times = fc.oneof(
      fc.tuple(days, zone).map((parts) => parts.join('')),
      fc
        .tuple(days, clock, dash, clock, zone)
        .map(([list, from, to, until, name]) => `${list} ${from}${to}${until}${name}`),
      fc.tuple(clock, dash, clock, zone).map((parts) => parts.join('')),
      fc.tuple(day, clock, day, clock, zone).map(([a, from, b, to, name]) => `${a} ${from} - ${b} ${to}${name}`),
      fc.tuple(instants, instants, zone).map(([from, to, name]) => `${from}/${to}${name}`),
      fc.constant(' always '),
    );
    const part = fc.constantFrom('', '7d', '59s', '1h', '30m', '90s', '000060s');
    const durations = fc.oneof(
      fc.tuple(part, part).map((two) => two.join('')),
      fc.constantFrom('never', 'default'),
    );
    const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'), 'UTC', 'EST', 'US/Eastern', 'Nowhere');
    const replaced = fc.oneof(
      sizes.map((text) => valid('1-4', text)),
      times.map((text) => valid('Mon-Fri 08:00-18:30', JSON.stringify(text))),
      durations.map((text) => valid('never', JSON.stringify(text))),
      zones.map((text) => valid('Europe/Berlin', text)),
    );
    fc.assert(
      fc.property(replaced, (text) => {
        if (parse(text).ok) expect(accepts(text), text).toBe(true);
      }),
      { numRuns: 2000 },
    );
    for (const name of Intl.supportedValuesOf('timeZone'))
      expect(accepts(valid('Europe/Berlin', name)), name).toBe(true);
  });

  it('is named by every sample for editors', () => {
    for (const path of SAMPLES)
      expect(read(path)).toMatch(/^# yaml-language-server: \$schema=\.\.\/schema\/policies\.schema\.json\n/);
  });
});
