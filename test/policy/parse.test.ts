import { describe, expect, it } from 'vitest';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { formatProblem } from '../../src/policy/problem.ts';
import { aSelector } from '../support/selectors.ts';
import { messagesOf, parse, problemsOf, schedulesOf, VALID, valid } from './policy-text.ts';

function theOnly(text: string) {
  const result = parse(text);
  expect(result.ok ? [] : result.problems).toEqual([]);
  return result.ok ? schedulesOf(result.set.policies)[0] : undefined;
}

describe('a policy file', () => {
  it('becomes policies without places, with defaults filled in', () => {
    expect(parse(VALID)).toEqual({
      ok: true,
      warnings: [],
      written: [expect.objectContaining({ name: 'office-hours' })],
      set: {
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        sources: new Map(),
        policies: [
          {
            kind: 'schedule',
            name: 'office-hours',
            file: 'web.yaml',
            owner: 'team-web',
            mode: 'enforce',
            select: aSelector({ projects: ['web-*'], minAgeMs: 1_800_000 }),
            priority: 0,
            windows: [
              {
                at: [
                  {
                    kind: 'weekly',
                    days: [1, 2, 3, 4, 5],
                    startMinute: 480,
                    endMinute: 1110,
                    endDayOffset: 0,
                    zone: 'Europe/Berlin',
                  },
                ],
                size: { minCu: 1, maxCu: 4 },
                suspendTimeoutSeconds: -1,
              },
            ],
            otherwise: 'leave',
          },
        ],
      },
    });
  });

  it('takes every form of size', () => {
    const sizes = ['2', '"2"', '0.25', '1-4', '"1 - 4"', '{ min: 1, max: 4 }', '56', '8-16'].map((size) => {
      const policy = theOnly(valid('1-4', size));
      return policy?.windows[0]?.size;
    });
    const fixed = { minCu: 2, maxCu: 2 };
    const range = { minCu: 1, maxCu: 4 };
    const small = { minCu: 0.25, maxCu: 0.25 };
    const large = { minCu: 56, maxCu: 56 };
    expect(sizes).toEqual([fixed, fixed, small, range, range, range, large, { minCu: 8, maxCu: 16 }]);
  });

  it('takes every form of suspend_after', () => {
    const timeouts = ['never', 'default', '1m', '90s', '1h30m', '7d'].map(
      (text) => theOnly(valid('never', text))?.windows[0]?.suspendTimeoutSeconds,
    );
    expect(timeouts).toEqual([-1, 300, 60, 90, 5400, 604_800]);
  });

  it('takes every form of otherwise', () => {
    const forms = ['leave', 'baseline', '{ size: 0.25-1, suspend_after: 5m }', '{ suspend_after: 5m }'].map(
      (text) => theOnly(valid('leave', text))?.otherwise,
    );
    const small = { minCu: 0.25, maxCu: 1 };
    expect(forms).toEqual([
      'leave',
      'baseline',
      { size: small, suspendTimeoutSeconds: 300 },
      { suspendTimeoutSeconds: 300 },
    ]);
  });

  it('is in UTC without a zone', () => {
    expect(theOnly(valid('timezone: Europe/Berlin\n'))?.windows[0]?.at[0]).toMatchObject({ zone: 'UTC' });
  });

  it('leaves out what is not enabled, and still checks it', () => {
    expect(parse(valid('    otherwise', '    enabled: false\n    otherwise'))).toMatchObject({
      ok: true,
      set: { policies: [] },
    });
    expect(messagesOf(valid('    otherwise: leave', '    enabled: false'))).toHaveLength(1);
  });

  it('without policies is valid and warned about', () => {
    const result = parse('version: 1\npolicies: []\n');
    expect(result).toMatchObject({ ok: true, set: { policies: [] } });
    expect(result.ok && result.warnings.map((warning) => formatProblem(warning))).toEqual([
      'web.yaml:2:11: no policies in this file\n  2 | policies: []\n    |           ^^',
    ]);
  });
});

describe('a headroom policy', () => {
  const headroom = `version: 1
sources: { s: { from: postgres, dsn_env: EBB_DSN_A } }
policies:
  - { name: h, kind: headroom, enabled: false, select: { projects: ["a"] }, connections: s, target: 70%, max_size: 8 }
`;

  it('is left out while it is disabled', () => {
    expect(parse(headroom)).toMatchObject({ ok: true, set: { policies: [] } });
  });
});

describe('the order of policies', () => {
  it('is the byte order of the paths of their files, then as written', () => {
    const file = (path: string, name: string) => ({ path, text: valid('office-hours', name) });
    const result = parsePolicyFiles([
      file('b.yaml', 'b'),
      file('ä.yaml', 'umlaut'),
      file('a/z.yaml', 'a'),
      file('B.yaml', 'upper'),
    ]);
    expect(result.ok && result.set.policies.map((policy) => policy.name)).toEqual(['upper', 'a', 'b', 'umlaut']);
  });
});

describe('the hash of a set', () => {
  const hashOf = (text: string, path = 'web.yaml') => {
    const result = parsePolicyFiles([{ path, text }]);
    return result.ok ? result.set.hash : 'broken';
  };

  it('is that of the meaning: not of comments, blanks, forms, or the name of the file', () => {
    const rewritten = VALID.replace('version: 1', '# about the web\nversion: 1\n')
      .replace('1-4', '{max: 4, min: 1}')
      .replace('leave', '"leave"')
      .replace('    select', '    priority: 0\n    select');
    expect(hashOf(rewritten, 'other.yaml')).toBe(hashOf(VALID));
  });

  it.each(['office-hours', '1-4', 'never', '08:00', 'Europe/Berlin', 'web-*', 'team-web'])(
    'changes with %s',
    (part) => {
      const others: Record<string, string> = {
        '1-4': '1-5',
        never: '5m',
        '08:00': '08:01',
        'Europe/Berlin': 'Europe/Paris',
      };
      expect(hashOf(valid(part, others[part] ?? 'other'))).not.toBe(hashOf(VALID));
    },
  );
});

describe('all or nothing', () => {
  it('one broken file leaves no set, and all problems of all files are reported in the order of their places', () => {
    const result = parsePolicyFiles([
      { path: 'b.yaml', text: valid('kind: schedule', 'kind: shedule') },
      { path: 'a.yaml', text: valid('select', 'selekt').replace('1-4', '3.5').replace('web-*', 'x') },
      { path: 'c.yaml', text: VALID.replace('office-hours', 'fine') },
    ]);
    expect(result.ok ? [] : result.problems.map((problem) => formatProblem(problem))).toEqual([
      'a.yaml:5:5: missing key "select"; expected a selector such as {projects: ["web-*"]}, or the name of a group\n  5 |   - name: office-hours\n    |     ^^^^',
      'a.yaml:7:5: unknown key "selekt"; did you mean "select"?\n  7 |     selekt: { projects: ["x"] }\n    |     ^^^^^^',
      'a.yaml:10:15: 3.5 CU is not a size; the nearest are 3 and 4\n  10 |         size: 3.5\n     |               ^^^',
      'b.yaml:5:11: the name "office-hours" is already used at a.yaml:5\n  5 |   - name: office-hours\n    |           ^^^^^^^^^^^^',
      'b.yaml:6:11: expected one of schedule, headroom, limits, restart, freeze, trial, budget, guard; did you mean "schedule"?\n  6 |     kind: shedule\n    |           ^^^^^^^',
    ]);
  });
});

describe('a problem', () => {
  it('is underlined, in colour where that is wanted', () => {
    const [problem] = problemsOf(valid('1-4', '\t3.5'));
    expect(problem).toBe(
      'web.yaml:10:16: 3.5 CU is not a size; the nearest are 3 and 4\n  10 |         size: \t3.5\n     |               \t^^^',
    );
    const result = parse(valid('1-4', '3.5'));
    const coloured = result.ok ? '' : formatProblem(result.problems[0] as never, { color: true });
    expect(coloured).toContain('\u001b[31m^^^\u001b[39m');
  });

  it('in a long line shows the part around its place', () => {
    const [problem = ''] = problemsOf(`${' '.repeat(0)}version: 1\npolicies: [${'"x",'.repeat(100)} 2]`).slice(-1);
    expect(problem.split('\n')[1]?.length).toBeLessThan(180);
    const [, line = '', carets = ''] = problem.split('\n');
    expect(line.slice(carets.indexOf('^'), carets.lastIndexOf('^') + 1)).toBe('"x"');
  });

  it('never shows what looks like a secret', () => {
    const texts = [
      valid('owner: team-web', 'api_key: napi_abcdef0123456789'),
      valid('owner', 'sources: { a: { from: postgres, dsn: "postgres://ebb:hunter2@db/postgres" } }\nowner'),
      valid('1-4', 'napi_abcdef0123456789'),
    ];
    for (const text of texts) {
      const shown = problemsOf(text).join('\n');
      expect(shown).toContain('****');
      expect(shown).not.toMatch(/abcdef|hunter2/);
    }
  });
});
