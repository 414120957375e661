import { formatEstimate } from '../../../domain/compute/cost.ts';
import { changesIn, FINDING_KINDS } from '../../../domain/recommend/finding.ts';
import type { FindingDocument, WasteDocument, WasteQuery, WasteTotal } from '../../../ports/waste.ts';
import { Choice } from './fleet-filters.tsx';
import { wholePage } from './layout.tsx';
import { ComputeLink, Minute, PageLinks, plural, Table } from './parts.tsx';

interface WasteViewProps {
  found: WasteDocument;
  query: WasteQuery;
}

type Estimate = WasteTotal['cu_hours_month'];

/** `/recommend`: findings, the largest saving first, as `ebb recommend` lists them. */
export function wasteView({ found, query }: WasteViewProps) {
  const { findings, totals, matched, projects, from, to } = found;
  return wholePage({
    title: 'Recommendations',
    children: (
      <>
        <h1>Recommendations</h1>
        <p>
          What would cost less, as <code>ebb recommend</code> lists it: from the operations of four weeks and from
          measured usage.{' '}
          {from === null || to === null ? (
            <span>
              No project has been looked at yet: the leader begins within a minute, and looks at each once a day.
            </span>
          ) : (
            <span>
              {plural(projects, 'project')} looked at between <Minute iso={from} /> and <Minute iso={to} />.
            </span>
          )}{' '}
          ebb applies none of it by itself.
        </p>
        <Filters found={found} query={query} />
        {totals.length > 0 && <Totals totals={totals} />}
        {matched === 0 ? (
          <p class="dim">Nothing is found{from === null ? ' yet' : ''}.</p>
        ) : (
          <>
            <Table
              caption={`${plural(matched, 'finding')}, the largest saving first`}
              head={['Compute', 'Saves a month', 'Figure', 'Finding', 'Change', 'Owner', 'Why, and the policy']}
              rows={findings.map((one) => [
                <>
                  {one.project_name} <ComputeLink id={one.compute_id} />
                </>,
                <Saves cuHours={one.saves.cu_hours_month} usd={one.saves.usd_month} />,
                one.figure,
                one.finding,
                changesIn(one).join(', ') || one.evidence.slice(0, 2).join(': '),
                <span class="whole">{one.owner}</span>,
                <Why finding={one} />,
              ])}
            />
            <PageLinks of="findings" page={found.page} pages={found.pages} addressOf={(to) => addressOf(query, to)} />
          </>
        )}
      </>
    ),
  });
}

function Filters({ found: { owners }, query: { owner, finding } }: WasteViewProps) {
  return (
    <search>
      <form method="get" action="/recommend">
        <Choice name="owner" label="Owner" value={owner} any="any owner" options={owners} />
        <Choice name="finding" label="Finding" value={finding} any="any finding" options={FINDING_KINDS} />
        <button type="submit">Show</button>
        {(owner !== undefined || finding !== undefined) && <a href="/recommend">Show all</a>}
      </form>
    </search>
  );
}

/** Figures are not added to each other: they promise different things. */
function Totals({ totals }: { totals: readonly WasteTotal[] }) {
  return (
    <Table
      caption="Totals by what the figure promises"
      head={['Figure', 'Done by', 'Findings', 'Saves a month']}
      rows={totals.map(({ figure, by_policy, findings, cu_hours_month, usd_month }) => [
        figure,
        by_policy ? 'policies' : 'people',
        findings.toLocaleString('en'),
        <Saves cuHours={cu_hours_month} usd={usd_month} />,
      ])}
    />
  );
}

function Saves({ cuHours, usd }: { cuHours: Estimate; usd: Estimate | null }) {
  const formatHours = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 1 });
  const hours = `${formatEstimate(cuHours, formatHours)} CU-hours`;
  return usd === null ? (
    hours
  ) : (
    <>
      {formatEstimate(usd)} <span class="under">{hours}</span>
    </>
  );
}

function Why({
  finding: { finding, compute_id: id, evidence, risk, policy, done_by: doneBy },
}: {
  finding: FindingDocument;
}) {
  return (
    <details>
      <summary>
        {policy === null ? 'Why' : 'Why, and policy'}
        <span class="unseen"> of {`${finding} of ${id}`}</span>
      </summary>
      <p>{evidence.join('; ')}.</p>
      <p>Mind: {risk}.</p>
      {doneBy !== undefined && <p>Done by {doneBy}, once ebb may apply it.</p>}
      {policy !== null && <pre>{policy}</pre>}
    </details>
  );
}

function addressOf(query: WasteQuery, page: number): string {
  const given = Object.entries({ ...query, page }).filter(([, value]) => value !== undefined);
  return `/recommend?${new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]))}`;
}
