import { readFile } from 'node:fs/promises';
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
  return markdown
    .split(/^```(?:sh)?\n/m)
    .map((part, index) =>
      index % 2 === 1 ? (
        <pre>{part}</pre>
      ) : (
        <p class="prose">{part.replace(/([^\n])\n *(?=[^\s|-])/g, '$1 ').trim()}</p>
      ),
    );
}
