import type { DecisionDocument, SettingsDocument, StatusDocument } from '../../../ports/documents.ts';
import type { Staleness } from '../../../ports/operator.ts';
import type { FleetDocument, FleetRowDocument } from '../../../ports/status-page.ts';
import { Decisions } from './decisions.tsx';
import { Holds } from './hold-form.tsx';
import { wholePage } from './layout.tsx';
import { NextChange } from './next-change.tsx';
import { Badge, ComputeLink, Operations, Section, Table } from './parts.tsx';
import { Notices, Summary, Waiting } from './summary.tsx';
import { WeekBand } from './week.tsx';
import { plural, sizeWords, suspendWords } from './words.ts';

export interface FleetViewProps {
  status: StatusDocument;
  fleet: FleetDocument;
  decisions: readonly DecisionDocument[];
  q: string;
  stale: Staleness | undefined;
}

/** `/`: how things stand, and the fleet. */
export function fleetView({ status, fleet, decisions, q, stale }: FleetViewProps) {
  const { at } = fleet;
  return wholePage({
    title: 'Fleet',
    refreshes: pageLink(q, fleet.page),
    ...{ at, stale },
    children: (
      <>
        <h1>Fleet</h1>
        <div id="summary" data-live>
          <Summary status={status} />
        </div>
        <div id="notices" data-live>
          <Notices status={status} now={at} />
        </div>
        <section aria-labelledby="computes-title">
          <h2 id="computes-title">Computes</h2>
          <search>
            <form method="get" action="/">
              <label for="q">Find by id, project, branch, state, status or policy</label>
              <input id="q" name="q" type="search" value={q} autocomplete="off" />
              <button type="submit">Find</button>
              {q !== '' && <a href="/">Show all</a>}
            </form>
          </search>
          <div id="computes" data-live>
            <Computes fleet={fleet} q={q} />
          </div>
        </section>
        <Section id="holds" title="Holds">
          <Holds holds={status.holds} now={at} none="None. One is set on the page of its compute." />
        </Section>
        <Section id="operations" title="Operations in flight">
          <Operations operations={status.operations} now={at} />
        </Section>
        <Section id="waiting" title="What waits">
          <Waiting status={status} />
        </Section>
        <Section id="decisions" title="Recent decisions">
          <Decisions decisions={decisions} now={at} />
        </Section>
        <Section id="policies" title="Policies">
          <Policies status={status} />
        </Section>
      </>
    ),
  });
}

function Computes({ fleet, q }: { fleet: FleetDocument; q: string }) {
  const { computes, matched, known, page, pages, at } = fleet;
  const found = q === '' ? plural(known, 'compute') : `${matched.toLocaleString('en')} of ${plural(known, 'compute')}`;
  if (computes.length === 0) return <p class="dim">{known === 0 ? 'No compute is known yet.' : `None of ${known}.`}</p>;
  return (
    <>
      <Table
        caption={`${found}, what needs attention first${pages > 1 ? `; page ${page} of ${pages}` : ''}`}
        head={['Compute', 'Status', 'Has', 'Wanted', 'Next change', 'Week ahead']}
        rows={computes.map((row) => cellsOf(row, at))}
      />
      {pages > 1 && <Pages q={q} page={page} pages={pages} />}
    </>
  );
}

function cellsOf(row: FleetRowDocument, now: string) {
  const { compute_id, project_name, branch_name, branch_id, status, current, desired, type } = row;
  return [
    <>
      <ComputeLink id={compute_id} />
      <span class="under">
        {project_name} · {branch_name ?? branch_id}
        {type === 'read_only' && ' · replica'}
      </span>
    </>,
    <>
      <Badge kind={status} /> <span class="under">{current.state}</span>
    </>,
    <SettingsCell settings={current} />,
    <SettingsCell settings={desired} instead={current} />,
    <NextChange row={row} now={now} />,
    <WeekBand week={row.week} now={now} />,
  ];
}

interface SettingsCellProps {
  settings: SettingsDocument;
  /** What it has meanwhile: what is wanted instead stands out. */
  instead?: SettingsDocument;
}

function SettingsCell({ settings, instead = settings }: SettingsCellProps) {
  const { min_cu, suspend_timeout_seconds: seconds } = settings;
  if (min_cu === null && seconds === null) return <span class="dim">no proposal</span>;
  const sizeDiffers = min_cu !== null && sizeWords(settings) !== sizeWords(instead);
  const timeoutDiffers = seconds !== null && seconds !== instead.suspend_timeout_seconds;
  return (
    <>
      <span class={sizeDiffers ? 'differs' : ''}>{sizeWords(settings)}</span>
      <span class={timeoutDiffers ? 'under differs' : 'under'}>{suspendWords(seconds)}</span>
    </>
  );
}

function Pages({ q, page, pages }: { q: string; page: number; pages: number }) {
  return (
    <nav aria-label="Pages of the fleet" class="pages">
      {page > 1 && <a href={pageLink(q, page - 1)}>Previous</a>}
      <span>
        page {page} of {pages}
      </span>
      {page < pages && <a href={pageLink(q, page + 1)}>Next</a>}
    </nav>
  );
}

function pageLink(q: string, page: number): string {
  const query = new URLSearchParams({ ...(q !== '' && { q }), ...(page > 1 && { page: `${page}` }) }).toString();
  return query === '' ? '/' : `/?${query}`;
}

function Policies({ status: { policies } }: { status: StatusDocument }) {
  if (!policies || policies.length === 0) return <p class="dim">No policy is loaded.</p>;
  return (
    <Table
      caption="Policies in force"
      head={['Policy', 'Kind', 'Mode', 'Owner']}
      rows={policies.map(({ name, kind, mode, owner }) => [
        <a href={`/?q=${encodeURIComponent(name)}`}>{name}</a>,
        kind,
        <Badge kind={mode} />,
        owner ?? '–',
      ])}
    />
  );
}
