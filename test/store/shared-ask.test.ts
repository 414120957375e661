import { expect, test } from 'vitest';
import { sharedAsk } from '../../src/adapters/store/revised-entries.ts';

/** A question whose answers a test gives by hand. */
function manualQuestion() {
  const open: { resolve(answer: string): void; reject(error: Error): void }[] = [];
  const ask = sharedAsk(() => new Promise<string>((resolve, reject) => open.push({ resolve, reject })));
  return { open, ask };
}

test('all who ask at the same time get one answer', async () => {
  const { open, ask } = manualQuestion();
  const answers = Promise.all([ask(), ask(), ask()]);
  await expect.poll(() => open.length).toBe(1);
  open[0]?.resolve('first');
  expect(await answers).toEqual(['first', 'first', 'first']);
});

test('who asks while an answer is under way gets the next, never one to a question older than theirs', async () => {
  const { open, ask } = manualQuestion();
  const before = ask();
  await expect.poll(() => open.length).toBe(1);
  const after = [ask(), ask()];
  open[0]?.resolve('old');
  expect(await before).toBe('old');
  await expect.poll(() => open.length).toBe(2);
  open[1]?.resolve('new');
  expect(await Promise.all(after)).toEqual(['new', 'new']);
});

test('a failure is that of those who asked, and the next ones ask again', async () => {
  const { open, ask } = manualQuestion();
  const failing = ask();
  await expect.poll(() => open.length).toBe(1);
  const next = ask();
  open[0]?.reject(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  await expect.poll(() => open.length).toBe(2);
  open[1]?.resolve('back');
  expect(await next).toBe('back');
});
