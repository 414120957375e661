import type { z } from 'zod';
import { savedRange } from '../../../domain/estimate.ts';
import { DAY_MS } from '../../../domain/time/units.ts';
import type { BudgetDocument, CostDetailDocument, CostsDocument } from '../../../ports/cost-documents.ts';
import type { Staleness, StatusDocument } from '../../../ports/documents.ts';
import type { CostQuery } from '../api/bodies.ts';
import { BudgetBar, DayBars, type Days, daysOf, isOver, MonthLine, NotMeasured } from './charts.tsx';
import { Choice, costsOf } from './fleet-filters.tsx';
import { htmlPage } from './layout.tsx';
import { budgetsOf, whyNotSaved } from './overview.tsx';
import {
  addressOf,
  amountWords,
  dayWords,
  Minute,
  numberWords,
  PageLinks,
  percentWords,
  plural,
  projectedWords,
  Table,
  WouldHaveSaved,
} from './parts.tsx';

type Query = z.output<typeof CostQuery>;

const PROJECTS_PER_PAGE = 100;

/** `/cost`: this month's compute by day, owner and project, and the budgets. */
export function costView(props: {
  status: StatusDocument;
  detail: CostDetailDocument | null;
  query: Query;
  stale: Staleness | undefined;
}) {
  const { status, detail, query, stale } = props;
  const { costs } = status;
  const { owner } = query;
  return htmlPage({
    title: 'Cost',
    refreshes: costLink(query),
    at: status.at,
    stale,
    children: (
      <>
        <h1>Cost</h1>
        <Filter costs={costs} detail={detail} owner={owner} />
        <div id="month" data-live>
          {costs ? <Month costs={costs} detail={detail} owner={owner} mode={status.mode} /> : <NotMeasured />}
        </div>
        <section aria-labelledby="budgets-title">
          <h2 id="budgets-title">Budgets</h2>
          <div id="budgets" data-live>
            <Budgets status={status} owner={owner} />
          </div>
        </section>
        {costs && detail && (
          <div id="parts" data-live>
            <ByDay detail={detail} costs={costs} owner={owner} />
            <ByOwner detail={detail} costs={costs} />
            <Projects detail={detail} query={query} />
          </div>
        )}
      </>
    ),
  });
}

function Filter({ costs, detail, owner }: Omit<MonthProps, 'costs'> & { costs: CostsDocument | null }) {
  // The owners of the days are left out: one of them may stand for several, or for earlier months.
  const owners = new Set([...(costs?.owners ?? []), ...(detail?.projects ?? [])].map((entry) => entry.owner));
  return (
    <search>
      <form method="get" action="/cost">
        <Choice name="owner" label="Owner" value={owner} any="any owner" options={[...owners]} />
        <button type="submit">Show</button>
        {owner !== undefined && <a href="/cost">Show all</a>}
      </form>
    </search>
  );
}

interface MonthProps {
  costs: CostsDocument;
  detail: CostDetailDocument | null;
  owner: string | undefined;
}

const FIGURE_WORDS = {
  replayed: 'each hour replayed',
  at_least: 'of which the low end is promised',
  estimate: 'an estimate',
  unknown: 'not known for all computes',
};

function Month({ costs, detail, owner, mode }: MonthProps & Pick<StatusDocument, 'mode'>) {
  const { total, would_have_saved: saved, from, known_until: until, unread_projects: unread = 0 } = costs;
  return (
    <div class="cards">
      <section class="card wide" aria-labelledby="so-far">
        <h2 id="so-far">This month{owner !== undefined && ` of ${owner}`}</h2>
        <p>
          <strong class="figure">
            {total.usd === null ? amountWords(total.cu_hours, 'cu_hours') : amountWords(total.usd, 'usd')}
          </strong>{' '}
          so far
          {total.usd !== null && <span class="dim">, {amountWords(total.cu_hours, 'cu_hours')}</span>}
          <br />
          {projectedWords(total)}
        </p>
        {detail && <MonthLine days={daysOf(detail, owner)} costs={costs} />}
        <p class="dim">
          Compute only: storage and transfer are not in it.{' '}
          {until < from ? (
            'Nothing is known yet.'
          ) : (
            <>
              Known until <Minute iso={until} />.
            </>
          )}
          {total.unknown_hours > 0 &&
            ` ${plural(Math.round(total.unknown_hours), 'hour')} of projects are unknown and not counted.`}
          {unread > 0 && ` Sums by owner lack ${plural(unread, 'project')} not read yet.`}
        </p>
      </section>
      <section class="card" aria-labelledby="saved-title">
        <h2 id="saved-title">What ebb saves</h2>
        {saved ? (
          <>
            <WouldHaveSaved {...saved} />
            <ul>
              {saved.parts.map((part) => (
                <li>{partWords(part)}</li>
              ))}
            </ul>
          </>
        ) : (
          <p class="dim">{whyNotSaved(mode, owner)}</p>
        )}
      </section>
    </div>
  );
}

/** `sizes: 3.1 to 5.2 CU-hours more, each hour replayed`, or `2 CU-hours more to 5 CU-hours saved` where both is possible. */
function partWords({ part, figure, cu_hours }: Part): string {
  const hours = savedRange(cu_hours, (value) => numberWords(value >= 100 ? Math.round(value) : value), ' CU-hours');
  const isKnown = figure !== 'unknown' || cu_hours.high > cu_hours.low;
  return `${part}: ${isKnown ? `${hours}, ` : ''}${FIGURE_WORDS[figure]}`;
}

type Part = NonNullable<CostsDocument['would_have_saved']>['parts'][number];

function Budgets({ status, owner }: { status: StatusDocument; owner: string | undefined }) {
  const budgets = budgetsOf(status, owner);
  if (budgets.length === 0) return <p class="dim">No policy is a budget{owner !== undefined && ` of ${owner}`}.</p>;
  const limits = status.mode === 'observe' ? 'would limit computes' : 'limits computes';
  return (
    <Table
      caption="Spent (strong) and projected (faint) of each amount; the line marks the amount"
      head={['Budget', 'Amount', 'Spent and projected', 'Spent', 'Projected', 'State']}
      rows={budgets.map((document) => {
        const { budget, account, month, spent, projected, limiting } = document;
        const share = (value: number) => percentWords(value / month.amount);
        return [
          <>
            <a href={addressOf('/', { policy: budget })}>{budget}</a> <span class="dim">{account}</span>
          </>,
          amountWords(month.amount, month.unit),
          <BudgetBar budget={document} />,
          spent === null ? 'price unknown' : `${amountWords(spent, month.unit)}, ${share(spent)}`,
          projected ? `${share(projected.low)} to ${share(projected.high)}` : 'not yet',
          <>
            <BudgetState budget={document} />
            {limiting[0] && ` ${limits} since ${dayWords(limiting[0].from)}`}
          </>,
        ];
      })}
    />
  );
}

function BudgetState({ budget }: { budget: BudgetDocument }) {
  if (isOver(budget)) return <span class="badge degraded">over</span>;
  if ((budget.projected?.mid ?? 0) > budget.month.amount) return <span class="badge observed">will be over</span>;
  return <span class="badge enforced">within</span>;
}

function ByDay({ detail, costs, owner }: { detail: CostDetailDocument } & Omit<MonthProps, 'detail'>) {
  const days = daysOf(detail, owner);
  return (
    <section aria-labelledby="days-title">
      <h2 id="days-title">By day</h2>
      <DayBars days={days} from={costs.from} tall />
      <p class="legend">
        <span class="key min" /> this month <span class="key max" /> before it. Days are those of UTC.
      </p>
      <details id="days-table">
        <summary>The days as a table</summary>
        <DayTable days={days} />
      </details>
    </section>
  );
}

function DayTable({ days: { firstDay, values, unit } }: { days: Days }) {
  const dayOf = (index: number) => new Date(Date.parse(firstDay) + index * DAY_MS).toISOString();
  return (
    <Table
      caption="Whole days, the last first"
      head={['Day', 'Used']}
      rows={values.map((value, index) => [dayWords(dayOf(index)), amountWords(value, unit)]).toReversed()}
    />
  );
}

function ByOwner({ detail, costs }: { detail: CostDetailDocument; costs: CostsDocument }) {
  const exists = (name: string) => costs.owners.some(({ owner }) => owner === name);
  return (
    <section aria-labelledby="owners-title">
      <h2 id="owners-title">By owner</h2>
      <Table
        caption="A bar for each day; those of this month are stronger"
        head={['Owner', 'This month', 'Days']}
        rows={detail.owners
          .filter(({ owner }) => owner === 'others' || exists(owner))
          .map(({ owner }) => [
            exists(owner) ? <a href={addressOf('/cost', { owner })}>{owner}</a> : owner,
            costsOf(costs, owner),
            <DayBars days={daysOf(detail, owner)} from={costs.from} />,
          ])}
      />
    </section>
  );
}

function Projects({ detail, query }: { detail: CostDetailDocument; query: Query }) {
  const { owner } = query;
  const all = detail.projects.filter((project) => owner === undefined || project.owner === owner);
  const pages = Math.max(1, Math.ceil(all.length / PROJECTS_PER_PAGE));
  const page = Math.min(query.page, pages);
  const more = detail.projects_left_out;
  return (
    <section aria-labelledby="projects-title">
      <h2 id="projects-title">By project</h2>
      <Table
        caption={`${plural(all.length, 'project')}, the most expensive first${more > 0 ? `; ${numberWords(more)} cheaper ones are left out` : ''}`}
        head={['Project', 'Owner', 'This month', 'CU-hours', 'Unknown hours']}
        rows={all
          .slice((page - 1) * PROJECTS_PER_PAGE, page * PROJECTS_PER_PAGE)
          .map((project) => [
            <a href={addressOf('/', { project: project.project_id })}>{project.project_name}</a>,
            project.owner,
            project.usd === null ? 'price unknown' : amountWords(project.usd, 'usd'),
            numberWords(project.cu_hours),
            project.unknown_hours === 0 ? '–' : numberWords(Math.round(project.unknown_hours)),
          ])}
      />
      <PageLinks of="projects" page={page} pages={pages} linkTo={(to) => costLink({ ...query, page: to })} />
    </section>
  );
}

function costLink({ owner, page }: Query): string {
  return addressOf('/cost', { owner, page: page > 1 ? page : undefined });
}
