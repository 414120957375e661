/** Runs the commands of a page one after the other in one shell, as a reader does. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Block, blocksOf, consoleText, type Exchange, exchangesOf, withBlocks } from './blocks.ts';
import type { Shell } from './shell.ts';
import { isSame } from './steady.ts';

const LONGEST_WAIT_MS = 120_000;
const POLL_MS = 500;

/**
 * Runs all `sh` and `console` blocks but those that install, and compares the page with what was printed. `toHere` changes what can't be so
 * on this machine, such as ports that are taken; `toPage` changes such parts of what was printed back.
 */
export async function runPage(
  page: string,
  { shell, toHere, toPage }: { shell: Shell; toHere(text: string): string; toPage(text: string): string },
): Promise<void> {
  /** Each command as the reader sees it end; only `ebb plan` may say by its code that there is something to do. */
  async function runScript({ text, line }: Block): Promise<void> {
    const { output, status } = await shell.run(toHere(text));
    expect(text.includes('ebb plan') && status === 2 ? 0 : status, `${page}:${line}: ${output}`).toBe(0);
  }

  async function runExchanges(block: Block): Promise<string> {
    const done: Exchange[] = [];
    for (const { command, output } of exchangesOf(block)) {
      const got = block.note === 'later' ? await untilSame(command, output) : await outputOf(command);
      // What only varies stays as the page has it.
      done.push({ command, output: isSame(got, output) ? output : got });
    }
    return consoleText(done);
  }

  const outputOf = async (command: string) => toPage((await shell.run(toHere(command))).output);

  /** What comes by itself: asked for until it is as the page shows it, or for so long that it is not to come any more. */
  async function untilSame(command: string, shown: string): Promise<string> {
    const last = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      const got = await outputOf(command);
      if (isSame(got, shown) || performance.now() > last) return got;
      await sleep(POLL_MS);
    }
  }

  const markdown = await readFile(page, 'utf8');
  const shown = new Map<number, string>();
  for (const [index, block] of blocksOf(markdown).entries()) {
    if (block.language === 'sh' && block.note !== 'install') await runScript(block);
    if (block.language === 'console') shown.set(index, await runExchanges(block));
  }
  await expect(withBlocks(markdown, shown)).toMatchFileSnapshot(`../../${page}`);
}
