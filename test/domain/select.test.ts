import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { compileGlob, compileSelector, type Selection } from '../../src/domain/policy/select.ts';
import { parseSelector, type SelectorKeys } from '../../src/domain/policy/selector.ts';

const NOW_MS = 10_000_000;
const compute: Compute = {
  account: 'main',
  projectId: 'quiet-sun-12345',
  projectName: 'web-shop',
  computeId: 'ep-cool-rain-1',
  branchId: 'br-main-1',
  type: 'read_write',
  regionId: 'aws-eu-central-1',
  state: 'active',
  disabled: false,
  createdAtMs: 0,
  minCu: 1,
  maxCu: 1,
  suspendTimeoutSeconds: 300,
};

function selects(selector: Partial<SelectorKeys>, changes: Partial<Compute> = {}): boolean {
  return selection(selector, changes) === 'yes';
}

function selection(selector: Partial<SelectorKeys>, changes: Partial<Compute> = {}): Selection {
  return compileSelector({ minAgeMs: 0, ...selector })({ ...compute, ...changes }, NOW_MS);
}

describe('a selector', () => {
  it.each<[string, Partial<SelectorKeys>, boolean]>([
    ['matches a project by name', { projects: ['web-*'] }, true],
    ['matches a project by id', { projects: ['quiet-sun-12345'] }, true],
    ['does not match another project', { projects: ['dev-*'] }, false],
    ['excludes by name what it includes by id', { projects: ['quiet-*', '!web-shop'] }, false],
    ['excludes whatever the order', { projects: ['!web-shop', '*'] }, false],
    ['matches nothing with excludes only', { projects: ['!other'] }, false],
    ['distinguishes upper and lower case', { projects: ['Web-*'] }, false],
    ['needs every key to match', { projects: ['web-*'], types: ['read_only'] }, false],
    [
      'matches all its keys',
      { accounts: ['main'], regions: ['*-eu-*'], branches: ['br-*'], computes: ['ep-????-rain-1'] },
      true,
    ],
    ['matches a type', { types: ['read_only', 'read_write'] }, true],
  ])('%s', (_name, selector, expected) => {
    expect(selects(selector)).toBe(expected);
  });

  it('leaves a compute alone until it is old enough', () => {
    const minAgeMs = 30 * 60_000;
    expect(selects({ minAgeMs }, { createdAtMs: NOW_MS - minAgeMs + 1 })).toBe(false);
    expect(selects({ minAgeMs }, { createdAtMs: NOW_MS - minAgeMs })).toBe(true);
  });
});

describe('the limits of a selector', () => {
  const problemOf = (projects: string[]) => {
    const outcome = parseSelector({ projects, minAgeMs: 0 }, 'request');
    return outcome.ok ? undefined : outcome.problem;
  };
  const many = (length: number, text: string) => Array.from({ length }, (_, index) => `${text}${index}`);

  it('leave room for what people write', () => {
    expect(problemOf(many(1000, 'web-'))).toBeUndefined();
    expect(problemOf(many(200, 'web-').map((glob) => `${glob}-*`))).toBeUndefined();
    expect(problemOf(['ep-????-rain-*', '*-eu-*', '!*-test'])).toBeUndefined();
  });

  it('refuse globs by what they take to match, whichever list they are in', () => {
    expect(problemOf([`*${'a*'.repeat(100)}`])).toContain('take too long');
    expect(problemOf([`*${'?'.repeat(100)}`])).toContain('take too long');
    const both = { branches: many(40, '*a*'), computes: many(40, '*a*'), minAgeMs: 0 };
    expect(parseSelector(both, 'request')).toMatchObject({ ok: false });
  });

  it('match a name with many globs without wildcards, and with excludes', () => {
    const plain = { projects: [...many(999, 'p-'), 'web-shop'], computes: ['*', '!ep-other'] };
    expect(selects(plain)).toBe(true);
    expect(selects({ ...plain, computes: ['*', '!ep-cool-rain-1'] })).toBe(false);
  });
});

describe('a glob', () => {
  it('means what the regular expression of the same meaning does', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '*', '?', '💧'), maxLength: 8 });
    fc.assert(
      fc.property(letters, letters, (glob, text) => {
        const escaped = glob.replaceAll('.', '\\.').replaceAll('*', '[^]*').replaceAll('?', '[^]');
        expect(compileGlob(glob)(text)).toBe(new RegExp(`^${escaped}$`, 'u').test(text));
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['web-*-web', 'web-web', false],
    ['web-*-web', 'web--web', true],
    ['ab*ba', 'aba', false],
    ['*', '', true],
    ['**b', 'ab', true],
    ['a*', 'a', true],
    ['a?', 'a', false],
    ['a*c?', 'abcbcd', true],
    ['a*c?', 'abc', false],
  ])('%s and %j', (glob, text, matches) => {
    expect(compileGlob(glob)(text)).toBe(matches);
  });

  it('with many stars does not explode', () => {
    expect(compileGlob(`${'*a'.repeat(100)}b`)('a'.repeat(5000))).toBe(false);
  });
});

describe('a share', () => {
  const ids = Array.from({ length: 4000 }, (_, index) => `ep-cool-rain-${index}`);
  const selected = (share: number) => ids.filter((computeId) => selects({ share }, { computeId }));

  it('selects about that part of the computes, always the same, and a larger one all of a smaller', () => {
    expect(selected(0.1).length).toBeGreaterThan(320);
    expect(selected(0.1).length).toBeLessThan(480);
    expect(selected(1)).toEqual(ids);
    const larger = new Set(selected(0.3));
    expect(selected(0.1).every((id) => larger.has(id))).toBe(true);
    expect(selected(0.001)).toEqual(selected(0.001));
  });
});

describe('a branch', () => {
  it('is selected by its id, and by its name where that is known', () => {
    const branchName = 'main';
    expect(selects({ branches: ['br-main-1'] }, { branchName })).toBe(true);
    expect(selects({ branches: ['main'] }, { branchName })).toBe(true);
    expect(selects({ branches: ['br-*', '!main'] }, { branchName })).toBe(false);
  });

  it.each<[readonly string[], Selection]>([
    [['br-main-1'], 'yes'],
    [['*'], 'yes'],
    [['main'], 'unknown'],
    [['*', '!main'], 'unknown'],
    [['main', '!other'], 'unknown'],
    [['main', '!br-*'], 'no'],
    [['*', '!br-main-1'], 'no'],
    [['!main'], 'no'],
    [[], 'no'],
  ])('whose name is not known: %j selects it: %s', (branches, expected) => {
    expect(selection({ branches })).toBe(expected);
  });

  it('is selected by its roles where it has any of them; while they are not known nobody can say', () => {
    const selector = { branchRoles: ['default', 'protected'] } as const;
    expect(selection(selector, { branchRoles: ['protected', 'child'] })).toBe('yes');
    expect(selection(selector, { branchRoles: ['child'] })).toBe('no');
    expect(selection(selector)).toBe('unknown');
    expect(selection({ ...selector, projects: ['dev-*'] })).toBe('no');
    expect(selection({ ...selector, minAgeMs: NOW_MS + 1 })).toBe('no');
  });
});
