import type { z } from 'zod';
import { AUDIT_KINDS, HISTORY_KINDS, type HistoryKind } from '../../../domain/records/history.ts';
import { withOutcomes } from '../../../domain/records/outcomes.ts';
import type { DecisionDocument } from '../../../ports/documents.ts';
import { MAX_CHARACTERS } from '../../../ports/operator.ts';
import type { HistoryQuery } from '../api/bodies.ts';
import { changeWords, historyLink, kindOf, Why } from './decisions.tsx';
import { htmlPage } from './layout.tsx';
import { Badge, ComputeLink, Minute, plural, Select, Table } from './parts.tsx';

type Query = z.output<typeof HistoryQuery>;

interface HistoryViewProps {
  lines: readonly DecisionDocument[];
  /** The cursor of the next page; null on the last. */
  next: string | null;
  query: Query;
}

const SHOWN = {
  audit: 'sent and commanded',
  decisions: 'all decisions, the newest',
} as const;

/** `/history`: the audit, or recent decisions, with filters. */
export function historyView({ lines, next, query }: HistoryViewProps) {
  return htmlPage({
    title: 'History',
    children: (
      <>
        <h1>History</h1>
        <p>
          {query.show === 'audit'
            ? 'Each request that ebb has sent to Neon, each command of a person, and each request that a token did not allow: as ebb audit. While ebb only observes, nothing is sent.'
            : 'Recent decisions, also those that waited or were only observed, and changes by others: as in ebb history.'}
        </p>
        <Filters query={query} />
        {lines.length === 0 ? (
          <p class="dim">
            Nothing is found.{' '}
            {query.show === 'audit' && <a href={historyLink({ ...query, show: 'decisions' })}>All decisions</a>}
          </p>
        ) : (
          <Lines lines={lines} query={query} />
        )}
        <nav aria-label="Pages of the history" class="pages">
          {query.after !== undefined && <a href={historyLink({ ...query, after: undefined })}>Newest</a>}
          {next !== null && <a href={historyLink({ ...query, after: next })}>Older</a>}
        </nav>
      </>
    ),
  });
}

function Lines({ lines: all, query }: { lines: readonly DecisionDocument[]; query: Query }) {
  const lines = withOutcomes(all);
  const narrowed = (more: Partial<Query>) => historyLink({ ...query, after: undefined, ...more });
  return (
    <div class="records">
      <Table
        caption={`${plural(lines.length, 'line')}, the newest first`}
        head={['When', 'What', 'Compute', 'Change', 'Why', 'Who']}
        rows={lines.map((line) => [
          <span id={line.id ?? undefined}>
            <Minute iso={line.at} />
          </span>,
          <a href={narrowed({ kind: line.kind })}>
            <Badge kind={kindOf(line)} />
          </a>,
          <>
            {line.compute_id === '' ? 'the fleet' : <ComputeLink id={line.compute_id} />}
            {line.owner !== null && (
              <a class="under" href={narrowed({ owner: line.owner })}>
                {line.owner}
              </a>
            )}
          </>,
          changeWords(line),
          <Why decision={line} />,
          <Who line={line} narrowed={narrowed} />,
        ])}
      />
    </div>
  );
}

function Who({ line, narrowed }: { line: DecisionDocument; narrowed: (more: Partial<Query>) => string }) {
  const { who, verified, request_id: request } = line;
  return (
    <>
      {who === null ? 'ebb' : <a href={narrowed({ who })}>{who}</a>}
      {who !== null && !verified && <span class="dim"> not verified</span>}
      {request !== null && (
        <a class="under" href={narrowed({ request })}>
          the whole request<span class="unseen"> {request}</span>
        </a>
      )}
    </>
  );
}

/** The filters that are folded away, so that a phone shows entries, too. */
const MORE_FILTERS = ['compute', 'owner', 'policy', 'who', 'since', 'until'] as const;

function Filters({ query }: { query: Query }) {
  const { show, kind } = query;
  const kinds = show === 'audit' ? HISTORY_KINDS.filter((name) => AUDIT_KINDS.has(name)) : HISTORY_KINDS;
  return (
    <search>
      <form method="get" action="/history">
        <Select name="show" label="Show" value={show} options={Object.entries(SHOWN)} />
        <Select
          name="kind"
          label="What"
          value={kind ?? ''}
          options={[['', 'anything'], ...kinds.map((name) => [name, KIND_WORDS[name]] as const)]}
        />
        <details class="more" open={MORE_FILTERS.some((name) => query[name] !== undefined)}>
          <summary>More filters</summary>
          <Field name="compute" label="Compute" value={query.compute} />
          <Field name="owner" label="Owner" value={query.owner} />
          <Field name="policy" label="Policy" value={query.policy} />
          <Field name="who" label="Who" value={query.who} />
          {show === 'audit' && (
            <>
              <Field name="since" label="From" value={query.since} type="date" />
              <Field name="until" label="To" value={query.until} type="date" />
            </>
          )}
        </details>
        {query.request !== undefined && (
          <>
            <input type="hidden" name="request" value={query.request} />
            <span class="chip">request {query.request.slice(0, 12)}</span>
          </>
        )}
        <button type="submit">Show</button>
        <a href="/history">Show all</a>
      </form>
    </search>
  );
}

const KIND_WORDS: Readonly<Record<HistoryKind, string>> = {
  write: 'size or timeout changed',
  restart: 'restarted',
  held: 'held back or observed',
  operation: 'operation ended',
  manual: 'changed by somebody else',
  guard: 'what a guard saw after a lowering',
  hold: 'hold',
  freeze: 'freeze',
  restore: 'restore',
  approve: 'policy set approved',
  notification: 'notifications',
  refused: 'refused request',
};

function Field(props: { name: string; label: string; value: string | undefined; type?: 'text' | 'date' }) {
  const { name, label, value = '', type = 'text' } = props;
  return (
    <span class="choice">
      <label for={name}>{label}</label>
      <input id={name} name={name} type={type} value={value} maxlength={MAX_CHARACTERS.query} autocomplete="off" />
    </span>
  );
}
