import { describe, expect, it } from 'vitest';
import { renderPolicyReference, sections } from '../../scripts/render-policy-reference.ts';

describe('what is generated from the schema of policies', () => {
  it('says what the schema says (regenerate with: npx vitest run generated --update)', async () => {
    await expect(renderPolicyReference()).toMatchFileSnapshot('../../docs/policy-reference.md');
  });

  it('tells the meaning of every key', () => {
    const keys = sections().flatMap((section) => section.keys);
    expect(keys.length).toBeGreaterThan(60);
    expect(keys.filter(({ schema }) => !schema.description).map(({ path }) => path)).toEqual([]);
  });
});
