import type { Child } from 'hono/jsx';
import type { CostDetailDocument } from '../../../ports/cost-documents.ts';
import type { DecisionDocument, SettingsDocument, Staleness, StatusDocument } from '../../../ports/documents.ts';
import type { FleetDocument, FleetQuery, FleetRowDocument } from '../../../ports/status-page.ts';
import { NextChange, wantedNow } from './compute-view.tsx';
import { DecisionList } from './decisions.tsx';
import { captionOf, Filters, fleetLink, Groups } from './fleet-filters.tsx';
import { HoldList } from './hold-form.tsx';
import { htmlPage } from './layout.tsx';
import { Guards, Notices, Waiting } from './notices.tsx';
import { Overview } from './overview.tsx';
import {
  addressOf,
  Badge,
  ComputeLink,
  Operations,
  PageLinks,
  Section,
  sizeWords,
  Table,
  timeoutWords,
} from './parts.tsx';
import { weekBands } from './week.tsx';

/** `/`: the status and the fleet; beside it waiting changes and recent decisions. */
export function fleetView(props: {
  status: StatusDocument;
  fleet: FleetDocument;
  costs: CostDetailDocument | null;
  decisions: readonly DecisionDocument[];
  query: FleetQuery;
  stale: Staleness | undefined;
}) {
  const { status, fleet, costs, decisions, query, stale } = props;
  const { at } = fleet;
  return htmlPage({
    title: 'Fleet',
    refreshes: fleetLink({ ...query, page: fleet.page }),
    at,
    stale,
    children: (
      <>
        <h1>Fleet</h1>
        <div id="summary" data-live>
          <Overview status={status} fleet={fleet} costs={costs} query={query} />
        </div>
        <div id="notices" data-live>
          <Notices status={status} now={at} />
        </div>
        <div class="beside">
          <section aria-labelledby="computes-title">
            <h2 id="computes-title">Computes</h2>
            <Filters query={query} fleet={fleet} />
            <div id="groups" data-live>
              <Groups query={query} fleet={fleet} costs={status.costs} />
            </div>
            <div id="computes" class="dense" data-live>
              <Computes fleet={fleet} query={query} observing={status.mode === 'observe'} />
            </div>
          </section>
          <aside aria-label="What waits and what was decided">
            <Section id="waiting" title="What waits">
              <Waiting status={status} query={query} />
            </Section>
            {(status.guards ?? []).length > 0 && (
              <Section id="guards" title="Guards">
                <Guards status={status} owner={query.owner} now={at} />
              </Section>
            )}
            <Section id="operations" title="Operations in flight">
              <Operations operations={status.operations} now={at} />
            </Section>
            <Section id="holds" title="Holds">
              <HoldList holds={status.holds} now={at} none="None. One is set on the page of its compute." />
            </Section>
            <Section id="decisions" title="Recent decisions">
              <DecisionList decisions={decisions} now={at} />
            </Section>
            <Section id="policies" title="Policies">
              <Policies status={status} />
            </Section>
          </aside>
        </div>
      </>
    ),
  });
}

/** `observing`: rows don't repeat that nothing is written, which a line above the list says. */
function Computes({ fleet, query, observing }: { fleet: FleetDocument; query: FleetQuery; observing: boolean }) {
  const { computes, known, page, pages, at } = fleet;
  const bandOf = weekBands(at);
  if (computes.length === 0) return <p class="dim">{known === 0 ? 'No compute is known yet.' : `None of ${known}.`}</p>;
  return (
    <>
      <Table
        caption={captionOf({ fleet, query })}
        head={['Compute', 'Project', 'Owner', 'Status', 'Has', 'Wanted', 'Next change', 'Week ahead']}
        rows={computes.map((row) => cellsOf(row, { now: at, observing, band: bandOf(row.week) }))}
      />
      <PageLinks of="the fleet" page={page} pages={pages} linkTo={(to) => fleetLink({ ...query, page: to })} />
    </>
  );
}

function cellsOf(row: FleetRowDocument, { now, observing, band }: { now: string; observing: boolean; band: Child }) {
  const { compute_id, project_name, branch_name, branch_id, owner, status, current, type } = row;
  return [
    <ComputeLink id={compute_id} />,
    <>
      {project_name} <span class="dim">{branch_name ?? branch_id}</span>
      {type === 'read_only' && <span class="dim"> replica</span>}
    </>,
    owner,
    <>
      {!(observing && status === 'observed') && <Badge kind={status} />} <span class="dim">{current.state}</span>
    </>,
    <SettingsCell settings={current} />,
    <Wanted desired={wantedNow(row, now)} current={current} />,
    <NextChange row={row} now={now} />,
    band,
  ];
}

function SettingsCell({ settings }: { settings: SettingsDocument }) {
  return (
    <>
      {sizeWords(settings)} <span class="dim">{timeoutWords(settings.suspend_timeout_seconds)}</span>
    </>
  );
}

/** Only fields that differ from the current ones. */
function Wanted({ desired, current }: { desired: SettingsDocument; current: SettingsDocument }) {
  const { min_cu, suspend_timeout_seconds: seconds } = desired;
  if (min_cu === null && seconds === null) return <span class="dim">no proposal</span>;
  const parts: string[] = [];
  if (min_cu !== null && sizeWords(desired) !== sizeWords(current)) parts.push(sizeWords(desired));
  if (seconds !== null && seconds !== current.suspend_timeout_seconds) parts.push(timeoutWords(seconds));
  return parts.length === 0 ? <span class="dim">the same</span> : <span class="differs">{parts.join(', ')}</span>;
}

function Policies({ status: { policies } }: { status: StatusDocument }) {
  if (!policies || policies.length === 0) return <p class="dim">No policy is loaded.</p>;
  return (
    <Table
      caption="Current policies"
      head={['Policy', 'Kind', 'Mode', 'Owner']}
      rows={policies.map(({ name, kind, mode, owner }) => [
        <a href={addressOf('/', { policy: name })}>{name}</a>,
        kind,
        <Badge kind={mode} />,
        owner ?? '–',
      ])}
    />
  );
}
