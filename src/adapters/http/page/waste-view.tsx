import { formatSaving } from '../../../domain/compute/cost.ts';
import { type ChangeBy, changesIn, FINDING_KINDS } from '../../../domain/recommend/finding.ts';
import type { FindingDocument, WasteDocument, WasteQuery, WasteTotal } from '../../../ports/waste.ts';
import { Choice } from './fleet-filters.tsx';
import { htmlPage } from './layout.tsx';
import { addressOf, ComputeLink, Minute, PageLinks, plural, Table } from './parts.tsx';

type Estimate = WasteTotal['cu_hours_month'];

/** `/recommend`: findings, the largest saving first, as `ebb recommend` lists them. */
export function wasteView({ found, query }: { found: WasteDocument; query: WasteQuery }) {
  const { findings, totals, matched, projects, from, to } = found;
  return htmlPage({
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
        <Filters owners={found.owners} query={query} />
        {totals.length > 0 && <Totals totals={totals} />}
        {matched === 0 ? (
          <p class="dim">Nothing is found{from === null ? ' yet' : ''}.</p>
        ) : (
          <>
            <Table
              caption={`${plural(matched, 'finding')}, the largest saving first`}
              head={['Compute', 'Saves a month', 'Figure', 'Finding', 'Change', 'Owner', 'Why, and the policy']}
              rows={findings.map((finding) => [
                <>
                  {finding.project_name} <ComputeLink id={finding.compute_id} />
                </>,
                <Saves cuHours={finding.saves.cu_hours_month} usd={finding.saves.usd_month} />,
                finding.figure,
                finding.finding,
                changesIn(finding).join(', ') || finding.evidence.slice(0, 2).join(': '),
                <span class="whole">{finding.owner}</span>,
                <Why finding={finding} />,
              ])}
            />
            <PageLinks
              of="findings"
              page={found.page}
              pages={found.pages}
              linkTo={(page) => addressOf('/recommend', { ...query, page })}
            />
          </>
        )}
      </>
    ),
  });
}

function Filters({ owners, query: { owner, finding } }: { owners: readonly string[]; query: WasteQuery }) {
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

const CHANGE_BY_TEXTS: Readonly<Record<ChangeBy, string>> = {
  proposed_policy: 'these policies',
  existing_policy: 'existing policies',
  changed_policy: 'existing policies and holds, once changed',
  unread_policy: "unknown: policies that are staged or can't be read may set it",
  people: 'people',
};

/** The totals by figure, since different figures must not be added. */
function Totals({ totals }: { totals: readonly WasteTotal[] }) {
  return (
    <Table
      caption="Totals by what the figure promises"
      head={['Figure', 'Done by', 'Findings', 'Saves a month']}
      rows={totals.map(({ figure, change_by, findings, cu_hours_month, usd_month }) => [
        figure,
        CHANGE_BY_TEXTS[change_by],
        findings.toLocaleString('en'),
        <Saves cuHours={cu_hours_month} usd={usd_month} />,
      ])}
    />
  );
}

function Saves({ cuHours, usd }: { cuHours: Estimate; usd: Estimate | null }) {
  const formatHours = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 1 });
  const hours = `${formatSaving(cuHours, formatHours)} CU-hours`;
  return usd === null ? (
    hours
  ) : (
    <>
      {formatSaving(usd)} <span class="under">{hours}</span>
    </>
  );
}

function Why({ finding: document }: { finding: FindingDocument }) {
  const { finding, compute_id: id, evidence, risk, policy, done_by: doneBy } = document;
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
