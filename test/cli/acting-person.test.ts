/** Who acts is `--by`; `--owner`, its name in 0.1.0, is still accepted. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { actorOf } from '../../src/cli/operator/access.ts';

let warnings: string[];
beforeEach(() => {
  warnings = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => warnings.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

it('is who is named, or the user of the system', () => {
  expect(actorOf({ by: 'ann' })).toBe('ann');
  expect(actorOf({})).toMatch(/./);
  expect(warnings).toEqual([]);
});

it('may be named by the former flag, with a warning', () => {
  expect(actorOf({ owner: 'ann' })).toBe('ann');
  expect(actorOf({ owner: 'ann', by: 'ann' })).toBe('ann');
  expect(warnings).toHaveLength(2);
  expect(warnings[0]).toMatch(/^warning: here --owner is now called --by/);
});

it('is refused where both flags differ', () => {
  expect(() => actorOf({ owner: 'ann', by: 'bob' })).toThrow('give --by only');
});
