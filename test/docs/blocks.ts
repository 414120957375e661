/** Fenced blocks of a Markdown page, and the commands in them. */

export interface Block {
  /** `sh`: a script as a whole. `console`: commands after `$ `, each with what it prints. */
  language: string;
  /** What follows the language: `later`, `install`. */
  note: string;
  text: string;
  /** Of the opening fence, from 1. */
  line: number;
}

export interface Exchange {
  command: string;
  /** As the page shows it, without the last newline. */
  output: string;
}

/** Those within a list are indented. */
const FENCE = /^( *)```(\w*) ?(.*)\n([\s\S]*?)^\1```$/gm;

export function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(FENCE)].map(
    ({ 1: indent = '', 2: language = '', 3: note = '', 4: text = '', index }) => ({
      ...{ language, note, text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), '') },
      line: markdown.slice(0, index).split('\n').length,
    }),
  );
}

/** Commands of a `console` block; a line that ends with a backslash goes on in the next. */
export function exchangesOf({ text }: Pick<Block, 'text'>): Exchange[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [, command = '', output = ''] = /^((?:.*\\\n)*.*)\n?([\s\S]*)$/.exec(part) ?? [];
      return { command, output: output.replace(/\n$/, '') };
    });
}

/** A `console` block with these exchanges. */
export function consoleText(exchanges: readonly Exchange[]): string {
  return exchanges.map(({ command, output }) => `$ ${command}\n${output === '' ? '' : `${output}\n`}`).join('');
}

/** The page with the text of some blocks replaced, by their index; none of them indented. */
export function withBlocks(markdown: string, texts: ReadonlyMap<number, string>): string {
  let index = -1;
  return markdown.replace(FENCE, (block, _indent: string, language: string, note: string) => {
    index += 1;
    const text = texts.get(index);
    return text === undefined ? block : `\`\`\`${language}${note === '' ? '' : ` ${note}`}\n${text}\`\`\``;
  });
}
