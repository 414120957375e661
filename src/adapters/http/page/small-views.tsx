import { readFile } from 'node:fs/promises';
import type { Context } from 'hono';
import type { Child } from 'hono/jsx';
import type { HoldDocument, Readiness } from '../../../ports/documents.ts';
import type { OperatorError, OperatorResult } from '../../../ports/operator.ts';
import { STATUS } from '../api/answer.ts';
import { ReleaseForm, type TokenNeed, type Written } from './hold-form.tsx';
import { htmlPage } from './layout.tsx';
import { ComputeLink, holdWords, Minute } from './parts.tsx';

/** `/holds/ID`: a hold, and the form that ends it. */
export function releaseView(props: { hold: HoldDocument; written?: Written; problem?: string; token: TokenNeed }) {
  const { hold, written = {}, problem, token } = props;
  return htmlPage({
    title: `Release ${hold.compute_id}`,
    children: (
      <>
        <h1>Release a hold</h1>
        <dl class="facts">
          <dt>Compute</dt>
          <dd>
            <ComputeLink id={hold.compute_id} />
          </dd>
          <dt>What</dt>
          <dd>{holdWords(hold)}</dd>
          <dt>Owner</dt>
          <dd>{hold.owner}</dd>
          <dt>Reason</dt>
          <dd>{hold.reason}</dd>
          <dt>Until</dt>
          <dd>{hold.expires_at === null ? 'released' : <Minute iso={hold.expires_at} />}</dd>
        </dl>
        <ReleaseForm holdId={hold.id} written={written} problem={problem} token={token} />
      </>
    ),
  });
}

/** The error, and the failed readiness checks, which often explain it. */
export function errorView({ message, readiness }: { message: string; readiness?: Readiness | undefined }) {
  const failed = readiness?.checks.filter(({ ok }) => !ok) ?? [];
  return htmlPage({
    title: 'Not shown',
    children: (
      <>
        <h1>This can't be shown</h1>
        <p class="notice bad">{message}</p>
        {failed.length > 0 && (
          <ul>
            {failed.map((check) => (
              <li>
                {check.name}: {check.message}
              </li>
            ))}
          </ul>
        )}
        <p>
          <a href="/">Back to the fleet</a>
        </p>
      </>
    ),
  });
}

export type Html = ReturnType<typeof errorView>;

/** Not 200 if the page shows a refused form again. */
export type PageStatus = 200 | 401 | (typeof STATUS)[OperatorError['code']];

export function pageAnswer<T>(
  context: Context,
  result: OperatorResult<T>,
  view: (value: T) => Html,
  status: PageStatus = 200,
) {
  return result.ok ? context.html(view(result.value), status) : errorAnswer(context, result.error);
}

export function errorAnswer(context: Context, { code, message }: OperatorError) {
  return context.html(errorView({ message }), STATUS[code]);
}

/** `docs` lies beside `src` in a checkout, and beside `dist` in the package and the image. */
const RUNBOOK = new URL('../../../../docs/runbook.md', import.meta.url);

export function readRunbook(): Promise<string> {
  return readFile(RUNBOOK, 'utf8');
}

/** `/runbook`: remedies for alerts. An alert links to the section with its name, in small letters. */
export function runbookView(markdown: string) {
  const [introduction = '', ...sections] = markdown.split(/^## /m);
  return htmlPage({
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

/** Paragraphs, lists and commands: the only Markdown of the runbook. */
function Prose({ markdown }: { markdown: string }) {
  return markdown
    .split(/^```(?:sh)?\n/m)
    .map((part, index) => (index % 2 === 1 ? <pre>{part}</pre> : part.trim().split(/\n\n+/).map(blockOf)));
}

function blockOf(block: string): Child {
  const [before = '', ...items] = block.split(/^- /m);
  return (
    <>
      {before.trim() !== '' && (
        <p class="prose">
          <Inline text={before.trim()} />
        </p>
      )}
      {items.length > 0 && (
        <ul class="prose">
          {items.map((item) => (
            <li>
              <Inline text={item.trim()} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const INLINE = /`([^`]+)`|\*([^*]+)\*|\[([^\]]+)\]\((#?)([^)]+)\)/g;

/** Code, and links to sections of the page. A link to another page, which daemons don't serve, becomes the name of its file. */
function Inline({ text }: { text: string }) {
  const parts: Child[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, name, words, hash, target] = match;
    parts.push(text.slice(end, match.index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (name !== undefined) parts.push(<em>{name}</em>);
    else parts.push(hash === '#' ? <a href={`#${target}`}>{words}</a> : withFile(words, target));
    end = match.index + whole.length;
  }
  return <>{[...parts, text.slice(end)]}</>;
}

function withFile(words = '', target = ''): string {
  const file = target.replace(/#.*|^\.\.\//g, '');
  return words.includes(file) ? words : `${words} (${file})`;
}
