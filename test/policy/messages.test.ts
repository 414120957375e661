import { describe, expect, it } from 'vitest';
import { messagesOf, valid } from './policy-text.ts';

const TIMES =
  'expected a time such as "Mon-Fri 08:00-18:30", "22:00-06:00", "Fri 20:00 - Mon 06:00", "2026-12-24/2026-12-27" or "always"';
const DATES = 'expected "2026-12-24" or "2026-12-24T08:00:00+01:00"';
const SIZE = 'expected a size in CU: fixed such as 2, a range such as 1-4, or {min: 1, max: 4}';
const OTHERWISE = 'expected "leave", "baseline", or values such as {size: 0.25, suspend_after: 5m}';
const TIMEOUT = 'expected "never", "default", or a duration of 1m to 7d such as "5m"';
const NAME = 'expected a name of letters, digits, ".", "_" and "-", at most 64 characters';
const GLOBS = 'expected a list of globs such as ["web-*", "!web-legacy"]';

describe('the message', () => {
  it.each<[string, string, string, string[]]>([
    // The file
    [
      'for another version',
      'version: 1',
      'version: 2',
      [
        '1:10 version 2 of the policy language is not known to this ebb, which reads version 1; write version: 1, or use a newer ebb',
      ],
    ],
    ['for a version as text', 'version: 1', 'version: "1"', ['1:10 expected 1, without quotes']],
    ['without a version', 'version: 1\n', '', ['1:1 missing key "version"; expected 1']],
    ['for an unknown key', 'owner', 'ownr', ['3:1 unknown key "ownr"; did you mean "owner"?']],
    [
      'for a key far from any other',
      'owner',
      'xyz',
      ['3:1 unknown key "xyz"; expected "version", "timezone", "owner", "sources", "calendars", "groups", "policies"'],
    ],
    [
      'for an owner that no label can be',
      'team-web',
      '"a\\nb"',
      ['3:8 expected a name of letters, digits, spaces, ".", "_", "@" and "-", at most 100 characters'],
    ],
    [
      'for a policy that is none',
      '  - name: office-hours\n',
      '  - 12\n  - name: office-hours\n',
      ['5:5 expected a policy: a mapping with name, kind and select'],
    ],

    // Zones
    [
      'for a zone with a slip',
      'Europe/Berlin',
      'Europe/Berln',
      ['2:11 "Europe/Berln" is not a time zone; did you mean "Europe/Berlin"?'],
    ],
    [
      'for a zone in lower case',
      'Europe/Berlin',
      'europe/berlin',
      ['2:11 "europe/berlin" is not a time zone; did you mean "Europe/Berlin"?'],
    ],
    [
      'for an abbreviation that several zones use',
      'Europe/Berlin',
      'IST',
      ['2:11 "IST" is not a time zone; expected an IANA name such as "Europe/Berlin"'],
    ],
    [
      'for an offset as a zone',
      'Europe/Berlin',
      '"+01:00"',
      ['2:11 "+01:00" is not a time zone; expected an IANA name such as "Europe/Berlin"'],
    ],
    // Policies
    ['for a name with a space', 'office-hours', 'office hours', [`5:11 ${NAME}`]],
    [
      'without a kind',
      '    kind: schedule\n',
      '',
      ['5:5 missing key "kind"; expected one of schedule, headroom, limits, restart, freeze, trial, budget, guard'],
    ],
    [
      'for a slip in the kind',
      'kind: schedule',
      'kind: shedule',
      [
        '6:11 expected one of schedule, headroom, limits, restart, freeze, trial, budget, guard; did you mean "schedule"?',
      ],
    ],
    [
      'for a priority that is no number',
      '    otherwise',
      '    priority: high\n    otherwise',
      ['12:15 expected a whole number from -1000000 to 1000000'],
    ],
    [
      'for a priority beyond its bounds',
      '    otherwise',
      '    priority: 1e9\n    otherwise',
      ['12:15 expected a whole number from -1000000 to 1000000'],
    ],
    [
      'for an unknown mode',
      '    otherwise',
      '    mode: enfroce\n    otherwise',
      ['12:11 expected enforce or observe; did you mean "enforce"?'],
    ],
    [
      'for "yes" as a boolean',
      '    otherwise',
      '    enabled: yes\n    otherwise',
      ['12:14 expected true or false; write true'],
    ],
    [
      'for a key of the file in a policy',
      '    otherwise',
      '    owner: web\n    otherwise',
      ['12:5 unknown key "owner" here; write it at the top of the file, for all its policies'],
    ],
    [
      'for a slip in the key of the kind',
      'kind: schedule',
      'knid: schedule',
      ['6:5 unknown key "knid"; did you mean "kind"?'],
    ],
    [
      'for a priority as text',
      '    otherwise',
      '    priority: "1"\n    otherwise',
      ['12:15 expected a whole number from -1000000 to 1000000; write 1 without quotes'],
    ],
    [
      'for a rule of disruption that is no mapping',
      '    otherwise',
      '    disruption: { lower: idle }\n    otherwise',
      ['12:26 expected a rule such as {when: idle, deadline: 2h}'],
    ],
    // Selectors
    [
      'for an empty selector',
      '{ projects: ["web-*"] }',
      '{}',
      ['7:13 has no key that selects computes; write {projects: ["*"]} to select everything'],
    ],
    [
      'for a selector of ages only',
      '{ projects: ["web-*"] }',
      '{ min_age: 1h }',
      ['7:15 has no key that selects computes; write {projects: ["*"]} to select everything'],
    ],
    [
      'for a selector that is no mapping',
      '{ projects: ["web-*"] }',
      '[web]',
      ['7:13 expected a selector such as {projects: ["web-*"]}, or the name of a group'],
    ],
    ['for a glob instead of a list', '["web-*"]', '"web-*"', [`7:25 ${GLOBS}; write ["web-*"]`]],
    ['for an empty list of globs', '["web-*"]', '[]', ['7:25 expected at least one glob']],
    [
      'for excludes only',
      '["web-*"]',
      '["!web-*"]',
      ['7:25 only excludes, so it selects nothing; add "*" to mean all others'],
    ],
    ['for a glob that is no text', '["web-*"]', '[12]', ['7:26 expected a glob such as "web-*"']],
    ['for an empty glob', '["web-*"]', '[""]', ['7:26 expected a glob such as "web-*", or "!web-legacy" to exclude']],
    ['for an unknown type', 'projects: ["web-*"]', 'types: [replica]', ['7:23 expected read_write or read_only']],
    [
      'for an age without a unit',
      'projects:',
      'min_age: 30, projects:',
      ['7:24 expected a duration of 0s to 365d, such as "90s", "5m", "1h30m"; write a unit, such as 30s or 30m'],
    ],
    // Windows
    ['without windows', '[', '[', []],
    [
      'for a window that says nothing',
      '        size: 1-4\n        suspend_after: never\n',
      '',
      ['9:9 a window says what it wants: add size, suspend_after, or both'],
    ],
    [
      'for a window without a time',
      'at: Mon-Fri 08:00-18:30\n        ',
      '',
      ['9:9 missing key "at"; expected a time such as "Mon-Fri 08:00-18:30", or a list of times'],
    ],
    ['for an empty otherwise', 'otherwise: leave', 'otherwise: {}', ['12:16 no values; write "leave" to set nothing']],
    ['for a slip in otherwise', 'otherwise: leave', 'otherwise: leav', [`12:16 ${OTHERWISE}; did you mean "leave"?`]],
    ['without otherwise', '    otherwise: leave\n', '', [`5:5 missing key "otherwise"; ${OTHERWISE}`]],
    // Sizes
    ['for a size that does not exist', '1-4', '3.5', ['10:15 3.5 CU is not a size; the nearest are 3 and 4']],
    ['for a size below the smallest', '1-4', '0.1', ['10:15 0.1 CU is not a size; the nearest is 0.25']],
    [
      'for two sizes that do not exist',
      '1-4',
      '17-57',
      ['10:15 17 CU is not a size; the nearest are 16 and 18', '10:15 57 CU is not a size; the nearest is 56'],
    ],
    [
      'for a range the wrong way round',
      '1-4',
      '4-1',
      ['10:15 the minimum, 4 CU, is above the maximum, 1 CU; write the smaller one first'],
    ],
    [
      'for a range above 16 CU',
      '1-4',
      '16-20',
      ['10:15 a range ends at 16 CU at most; above that only a fixed size such as 20 is allowed'],
    ],
    [
      'for a range that is too wide',
      '1-4',
      '1-10',
      ['10:15 a range spans 8 CU at most, this one 9 CU; raise the minimum or lower the maximum'],
    ],
    ['for a word as a size', '1-4', 'large', [`10:15 ${SIZE}`]],
    ['for a list as a size', '1-4', '[1, 4]', [`10:15 ${SIZE}`]],
    [
      'for ends of a range as text',
      '1-4',
      '{ min: "1", max: "4" }',
      [
        '10:22 expected a number of CU; write 1 without quotes',
        '10:32 expected a number of CU; write 4 without quotes',
      ],
    ],
    ['for half a range', '1-4', '{ min: 1 }', ['10:17 missing key "max"; expected a number of CU']],
    // Timeouts
    ['for a timeout in seconds', 'never', '300', [`11:24 ${TIMEOUT}; write a unit, such as 300s or 300m`]],
    ['for a timeout that is too short', 'never', '59s', [`11:24 ${TIMEOUT}`]],
    ['for a timeout that is too long', 'never', '169h', [`11:24 ${TIMEOUT}`]],
    // Names
    [
      'for a group that does not exist',
      '{ projects: ["web-*"] }',
      'web',
      ['7:13 no group is named "web"; this file has no "groups"'],
    ],
    [
      'for a calendar that does not exist',
      '        size',
      '        except: [holidays]\n        size',
      ['10:18 no calendar is named "holidays"; this file has no "calendars"'],
    ],
    ['for no calendar', '        size', '        only: []\n        size', ['10:15 expected at least one calendar']],
    // YAML
    ['for a tag', '1-4', '!!str 1-4', ['10:21 YAML tags are not supported; write a plain value']],
    ['for an anchor', '1-4', '&size 1-4', ['10:21 YAML anchors are not supported; write the value out']],
    [
      'for an alias',
      '1-4',
      '*size',
      ['10:15 YAML aliases are not supported; write the value out, or name a selector under "groups"'],
    ],
    [
      'for a directive',
      'version',
      '%YAML 1.1\n---\nversion',
      ['1:1 YAML directives are not supported; remove this line'],
    ],
    [
      'for a second document',
      'version',
      'version: 1\n---\nversion',
      ['2:1 a file holds one YAML document; remove the second "---"'],
    ],
    [
      'for a key that is there twice',
      'owner: team-web',
      'owner: a\nowner: b',
      ['4:1 the key "owner" is already there'],
    ],
    ['for a key that is a mapping', 'owner: team-web', '{a: b}: c', ['3:2 expected a plain key such as "name:"']],
    [
      'for a tab as indentation',
      '        size',
      '\tsize',
      ['10:1 Tabs are not allowed as indentation', '11:24 Nested mappings are not allowed in compact mappings'],
    ],
  ])('%s', (_name, part, replacement, expected) => {
    const messages = messagesOf(valid(part, replacement));
    expect(
      messages.filter((message) => !/missing key "(version|policies)"/.test(message) || expected.includes(message)),
    ).toEqual(expected);
  });

  it.each<[string, string[]]>([
    ['12', ['expected a time such as "Mon-Fri 08:00-18:30", or a list of times']],
    ['[]', ['expected at least one time']],
    ['whenever', [TIMES]],
    ['Mon-Fun 08:00-09:00', ['"Fun" is not a day; did you mean "Sun"?']],
    ['Mon,Xyz', ['"Xyz" is not a day; expected one of Mon, Tue, Wed, Thu, Fri, Sat, Sun']],
    ['at eight', [TIMES]],
    ['9am', [TIMES]],
    ['8-18', ['"8-18" is not a time; write "08:00-18:00"']],
    ['Mon-Fri 9am-5pm', ['"Mon-Fri 9am-5pm" is not a time; write "Mon-Fri 09:00-17:00"']],
    ['Monday-Friday 12am - 12:30 pm', ['"Monday-Friday 12am - 12:30 pm" is not a time; write "Mon-Fri 00:00 - 12:30"']],
    [
      'saturdays 8 to 18 Europe/Berlin',
      ['"saturdays 8 to 18 Europe/Berlin" is not a time; write "Sat 08:00-18:00 Europe/Berlin"'],
    ],
    ['Mon-Fri, 08:00-18:00', ['"Mon-Fri, 08:00-18:00" is not a time; write "Mon-Fri 08:00-18:00"']],
    ['Mon 13pm-14pm', [TIMES]],
    ['Monday 08:00-09:00', ['"Monday" is not a day; did you mean "Mon"?']],
    ['mon 08:00-09:00', ['"mon" is not a day; did you mean "Mon"?']],
    ['Mon-Mon 08:00-09:00', ['"Mon-Mon" is one day or all of them; write "Mon"']],
    ['Mon 8:00-09:00', ['"8:00" needs two digits for the hour; write "08:00"']],
    [
      'Mon 08:60-25:00',
      [
        '"08:60" is not a time of day; expected 00:00 to 24:00',
        '"25:00" is not a time of day; expected 00:00 to 24:00',
      ],
    ],
    ['Mon 24:00-06:00', ['24:00 can only be an end; a window that starts there starts at 00:00 of the next day']],
    [
      'Mon 06:00 - Mon 06:00',
      ['a span that ends where it starts is a day or a week; write "Mon 06:00-06:00" or "always"'],
    ],
    ['Mon 06:00-07:00 Europe/Berln', ['"Europe/Berln" is not a time zone; did you mean "Europe/Berlin"?']],
    ['Mon 06:00-07:00 +01:00', [TIMES]],
    ['2026-12-24', ['expected an interval "START/END", such as "2026-12-24/2026-12-27"']],
    ['2026-12-24/P3D', [`"P3D" is not a date or a date and time; ${DATES}`]],
    ['2026-02-30/2026-03-01', [`"2026-02-30" is not a date or a date and time; ${DATES}`]],
    ['2026-12-24T24:00/2026-12-27', [`"2026-12-24T24:00" is not a date or a date and time; ${DATES}`]],
    ['2026-12-24T00:00Z/2026-12-27', ['an offset on one end only; write it on both, or on neither']],
    ['2026-12-24T00:00+15:00/2026-12-27T00:00Z', ['"+15:00" is not an offset; expected "Z" or -12:00 to +14:00']],
    ['2026-12-24T00:00Z/2026-12-27T00:00Z Europe/Berlin', ['the offsets already fix the interval; remove the zone']],
    ['2026-12-24/2026-12-24', ['the interval ends before it has begun; write START/END']],
    [
      '2026-12-24/2026-12-25 Moon/Crater',
      ['"Moon/Crater" is not a time zone; expected an IANA name such as "Europe/Berlin"'],
    ],
    [`Mon${',Mon'.repeat(60)} 08:00-09:00`, [TIMES]],
  ])('for the time %s', (at, expected) => {
    const messages = messagesOf(
      valid('Mon-Fri 08:00-18:30', at.startsWith('[') ? at : JSON.stringify(at).replace(/^"12"$/, '12')),
    );
    expect(messages).toEqual(expected.map((message) => `9:13 ${message}`));
  });
});

describe('the message of a whole file', () => {
  const EMPTY = '1:1 the file is empty; write "version: 1" and "policies:" (policies/ has samples), or remove the file';

  it.each([
    ['that is empty', '', EMPTY],
    ['of comments only', '# to come\n', EMPTY],
    [
      'that is no mapping',
      '- name: a\n',
      '1:1 expected a policy file: "version: 1", and below it "policies:" with a list',
    ],
    [
      'whose policies are no list',
      'version: 1\npolicies: { name: a }\n',
      '2:13 expected a list of policies; write "- " before each entry',
    ],
  ])('%s', (_what, text, expected) => {
    expect(messagesOf(text)).toEqual([expected]);
  });

  it.each([
    ['{ country: Germany }', '2:19 "Germany" is not a country; write DE'],
    ['{ country: österreich }', '2:19 "österreich" is not a country; write AT'],
    ['{ country: UK }', '2:19 "UK" is not a country; write GB'],
    ['{ country: de }', '2:19 "de" is not a country; did you mean "DE"?'],
    ['{ country: DE, state: Berlin }', '2:19 "Berlin" is not a state of DE; write BE'],
    [
      '{ dates: 2026-12-24 }',
      '2:26 expected a list of dates such as 2026-12-24 and ranges such as 2026-12-28/2026-12-31; write ["2026-12-24"]',
    ],
  ])('with the calendar %s', (calendar, expected) => {
    expect(messagesOf(`version: 1\ncalendars: { h: ${calendar} }\npolicies: []\n`)).toEqual([expected]);
  });

  it.each([
    ['suspend_after: 5m', '3:76 expected bounds of the timeout such as {max: 5m}, {min: 1m}, or both'],
    ['size: { min: "1" }', '3:74 expected a size in CU; write 1 without quotes'],
  ])('with limits of %s', (limits, expected) => {
    const text = `version: 1\npolicies:\n  - { name: abc, kind: limits, select: { projects: ["*"] }, ${limits} }\n`;
    expect(messagesOf(text)).toEqual([expected]);
  });
});

describe('the message of a headroom policy', () => {
  const headroom = (changes: Record<string, string>) => {
    const values = {
      name: 'h',
      kind: 'headroom',
      enabled: 'false',
      select: '{ projects: ["a"] }',
      connections: 's',
      target: '70%',
      max_size: '8',
      ...changes,
    };
    return messagesOf(
      `version: 1\npolicies:\n  - ${Object.entries(values)
        .map(([key, value]) => `${key}: ${value}`)
        .join('\n    ')}\nsources: { s: { from: prometheus, url: "http://127.0.0.1:9", query: q } }\n`,
    );
  };

  it.each<[string, string, string]>([
    ['target', '0.7', '8:13 expected a share such as "70%", from 1% to 100%; write "70%"'],
    ['target', '70', '8:13 expected a share such as "70%", from 1% to 100%; write "70%"'],
    ['max_size', '"8"', '9:15 expected a size in CU such as 8; write 8 without quotes'],
    ['may_raise_min', 'no', '10:20 expected true or false; write false'],
    ['scale_down', '30m', '10:17 expected {after: 30m}'],
    ['target', '0%', '8:13 expected a share such as "70%", from 1% to 100%'],
    ['max_size', '7.5', '9:15 7.5 CU is not a size; the nearest are 7 and 8'],
    ['scale_down', '{ after: 10s }', '10:26 expected a duration of 1m to 7d, such as "90s", "5m", "1h30m"'],
    ['act', 'report', '10:10 expected apply or advise'],
  ])('for %s: %s', (key, value, expected) => {
    expect(headroom({ [key]: value })).toEqual([expected]);
  });

  it.each([
    [
      '{ from: prometheus, url: "file:///etc/passwd", query: q }',
      '2:40 expected a URL such as "http://prometheus:9090"',
    ],
    ['{ from: postgres, dsn_env: HOME }', '2:42 expected the name of a variable that begins with EBB_DSN_'],
    [
      '{ from: postgres, dsn: "postgres://a:b@c/d" }',
      '2:38 expected postgres://user@$host/database without a password; use dsn_env or dsn_file for a secret',
    ],
    ['{ from: postgres }', '2:17 expected exactly one of dsn_env, dsn_file, dsn'],
    [
      '{ from: prometeus }',
      '2:23 expected a source with from: prometheus or from: postgres; did you mean "prometheus"?',
    ],
    ['{ from: influx }', '2:23 expected a source with from: prometheus or from: postgres'],
  ])('for the source %s', (source, expected) => {
    expect(messagesOf(`version: 1\nsources: { a: ${source} }\npolicies: []\n`)).toEqual([expected]);
  });
});
