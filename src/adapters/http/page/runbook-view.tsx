import { readFile } from 'node:fs/promises';
import type { Child } from 'hono/jsx';
import { wholePage } from './layout.tsx';

/** Beside `src` in a checkout, and beside `dist` in the package and the image. */
const FILE = new URL('../../../../docs/runbook.md', import.meta.url);

/** docs/runbook.md. Rejects if the file is not there. */
export function readRunbook(): Promise<string> {
  return readFile(FILE, 'utf8');
}

/** `/runbook`: what to do about an alert, each at its name in small letters: the alerts link there. */
export function runbookView(markdown: string) {
  const [introduction = '', ...sections] = markdown.split(/^## /m);
  return wholePage({
    title: 'Runbook',
    children: (
      <>
        <h1>Runbook</h1>
        <Prose markdown={introduction.replace(/^# .*\n+/, '')} />
        {sections.map((section) => {
          const [name = '', ...lines] = section.split('\n');
          return (
            <section>
              <h2 id={name.toLowerCase()}>{name}</h2>
              <Prose markdown={lines.join('\n')} />
            </section>
          );
        })}
      </>
    ),
  });
}

/** The text as it is written, with lines as long as there is room, and commands apart. */
function Prose({ markdown }: { markdown: string }) {
  return markdown.split(/^```(?:sh)?\n/m).map((part, index) =>
    index % 2 === 1 ? (
      <pre>{part}</pre>
    ) : (
      <p class="prose">
        <Inline text={part.replace(/([^\n])\n *(?=[^\s|-])/g, '$1 ').trim()} />
      </p>
    ),
  );
}

const INLINE = /`([^`]+)`|\[([^\]]+)\]\((#?)([^)]+)\)/g;

/** Code apart, and links to sections of the page; of a page that daemons don't serve the name of its file. */
function Inline({ text }: { text: string }) {
  const parts: Child[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, words, hash, target] = match;
    parts.push(text.slice(end, match.index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else parts.push(hash === '#' ? <a href={`#${target}`}>{words}</a> : named(words, target));
    end = match.index + whole.length;
  }
  return <>{[...parts, text.slice(end)]}</>;
}

function named(words = '', target = ''): string {
  const file = target.replace(/#.*|^\.\.\//g, '');
  return words.includes(file) ? words : `${words} (${file})`;
}
