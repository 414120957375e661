import { expect, it } from 'vitest';
import { narrowKeys } from '../../src/app/fleet/inventory.ts';
import { aCompute, aSchedule } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const policies = ['shop', 'billing', 'docs'].map((name) =>
  aSchedule({ name, select: aSelector({ projects: [name] }) }),
);
const shop = aCompute({ account: 'main', projectId: 'shop' });
const project = (projectId: string, account = 'main') => ({ account, projectId });

it('an account whose key shows one project is told, with how many policies select nothing', () => {
  expect(narrowKeys({ projects: [project('shop')], computes: [shop], policies })).toEqual([
    {
      account: 'main',
      policies: 2,
      message:
        'the key of account main shows one project, shop, and 2 of 3 policies select nothing: if the account has more projects, the key is scoped to this one; use a key of the organization',
    },
  ]);
});

it('nothing is told of an account with several projects, nor where every policy selects something', () => {
  const projects = [project('shop'), project('other')];
  expect(narrowKeys({ projects, computes: [shop], policies })).toEqual([]);
  expect(narrowKeys({ projects: [project('shop')], computes: [shop], policies: policies.slice(0, 1) })).toEqual([]);
});

it('of several accounts the one with a single project is told', () => {
  const projects = [project('shop'), project('a', 'other'), project('b', 'other')];
  expect(narrowKeys({ projects, computes: [shop], policies }).map(({ account }) => account)).toEqual(['main']);
});
