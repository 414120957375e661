import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { mapInTurns } from '../../../common/in-turns.ts';
import type { OperationDocument } from '../../../ports/documents.ts';
import { distanceWords, instantWords } from './words.ts';

/** An instant, with how far it is from now. */
export function Instant({ iso, now }: { iso: string; now: string }) {
  return (
    <>
      <time datetime={iso}>{instantWords(iso, now)}</time>
      <span class="dim"> {distanceWords(iso, now)}</span>
    </>
  );
}

/** An instant to the minute: UTC, until a script makes it local time. */
export function Minute({ iso }: { iso: string }) {
  return <time datetime={iso}>{iso.slice(0, 16).replace('T', ' ')} UTC</time>;
}

const INSTANT = /(\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** Text as reasons have it, its instants as times. */
export function Message({ text }: { text: string }) {
  return <>{text.split(INSTANT).map((part, index) => (index % 2 === 1 ? <Minute iso={part} /> : part))}</>;
}

export function Badge({ kind }: { kind: string }) {
  return <span class={`badge ${kind}`}>{kind}</span>;
}

/** A part of a page that is exchanged as a whole when it has changed. */
export function Section({ id, title, children }: { id: string; title: string; children: Child }) {
  return (
    <section aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      <div id={id} data-live>
        {children}
      </div>
    </section>
  );
}

interface TableProps {
  caption: string;
  head: readonly string[];
  rows: readonly (readonly Child[])[];
}

/** A table that becomes a list of cards where there is little room: then each cell says which column it is. */
export function Table({ caption, head, rows }: TableProps) {
  return (
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {head.map((name) => (
            <th scope="col">{name}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Rows head={head} rows={rows} />
      </tbody>
    </table>
  );
}

/** Each is drawn before the next one is begun, in turns: there may be thousands. */
async function Rows({ head, rows }: Pick<TableProps, 'head' | 'rows'>) {
  const drawn = await mapInTurns(rows, ([first, ...cells]) =>
    raw(
      `${(
        <tr>
          <th scope="row">{first}</th>
          {cells.map((cell, index) => (
            <td data-label={head[index + 1]}>
              <div>{cell}</div>
            </td>
          ))}
        </tr>
      )}`,
    ),
  );
  return <>{drawn}</>;
}

export function ComputeLink({ id }: { id: string }) {
  return <a href={`/computes/${id}`}>{id}</a>;
}

export function Operations({ operations, now }: { operations: readonly OperationDocument[]; now: string }) {
  if (operations.length === 0) return <p class="dim">None that ebb has started.</p>;
  return (
    <Table
      caption="Operations in flight"
      head={['Compute', 'Action', 'Since', 'Policy']}
      rows={operations.map(({ compute_id, action, started_at, policy }) => [
        <ComputeLink id={compute_id} />,
        action,
        <Instant iso={started_at} now={now} />,
        policy ?? '–',
      ])}
    />
  );
}
