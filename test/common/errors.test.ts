import { expect, it } from 'vitest';
import { describeChain, step } from '../../src/common/errors.ts';

it('an error of a step tells where it happened, from the outside in, and keeps what was thrown', async () => {
  const thrown = new Error('connection refused');
  const work = step('project p-1', () => step('storing the pending write', () => Promise.reject(thrown)));
  const error: unknown = await work.catch((one: unknown) => one);
  expect(describeChain(error)).toBe('project p-1: storing the pending write: connection refused');
  expect(error).toMatchObject({ cause: { cause: thrown } });
});

it('a step gives back what its work gives', async () => {
  expect(await step('counting', async () => 3)).toBe(3);
});

it('an error that is its own cause ends', () => {
  const error = new Error('round');
  error.cause = error;
  expect(describeChain(error)).toBe('round');
});
