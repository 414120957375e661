import type { Child } from 'hono/jsx';
import { savedRange } from '../../../domain/estimate.ts';
import { shortHash } from '../../../domain/policy/policy.ts';
import type { CostDetailDocument, CostsDocument } from '../../../ports/cost-documents.ts';
import type { StatusDocument } from '../../../ports/documents.ts';
import type { FleetDocument, FleetQuery } from '../../../ports/status-page.ts';
import { daysOf, isOver, MonthLine, NotMeasured } from './charts.tsx';
import { cuWords, fleetLink } from './fleet-filters.tsx';
import {
  addressOf,
  amountWords,
  Instant,
  listedCount,
  Minute,
  numberWords,
  percentWords,
  plural,
  projectedWords,
  WouldHaveSaved,
} from './parts.tsx';

interface OverviewProps {
  status: StatusDocument;
  fleet: FleetDocument;
  costs: CostDetailDocument | null;
  query: FleetQuery;
}

/** Cards for problems that need a person, which a phone shows first, for costs, savings and next changes. */
export function Overview({ status, fleet, costs, query }: OverviewProps) {
  const isAll = fleet.matched === fleet.known;
  return (
    <>
      <Mode status={status} fleet={fleet} query={query} />
      {!isAll && (
        <p class="dim">
          Of {numberWords(fleet.matched)} of {plural(fleet.known, 'compute')}. <a href="/">Show all</a>
        </p>
      )}
      <div class="cards">
        <Card title="What needs a person" id="attention">
          <Attention status={status} owner={query.owner} />
        </Card>
        <Card title="What it costs" id="costs">
          <Costs costs={status.costs} detail={costs} owner={query.owner} />
        </Card>
        <Card title="What ebb saves" id="saved">
          <Saved status={status} now={fleet.saved_now} owner={query.owner} />
        </Card>
        <Card title="What changes next" id="next">
          <Next status={status} fleet={fleet} query={query} />
        </Card>
      </div>
    </>
  );
}

function Card({ title, id, children }: { title: string; id: string; children: Child }) {
  return (
    <section class="card" aria-labelledby={`${id}-card`}>
      <h2 id={`${id}-card`}>{title}</h2>
      {children}
    </section>
  );
}

/** Mode, policies, and counts of computes by status, with links to them. */
function Mode({ status, fleet, query }: Omit<OverviewProps, 'costs'>) {
  const { mode, computes, set_hash, revision, policies } = status;
  const { listed, read } = fleet.projects;
  return (
    <p class="mode">
      <span class={`badge ${mode}`}>{mode}</span> {mode === 'enforce' ? 'computes are changed' : 'nothing is written'};{' '}
      {plural(policies?.length ?? 0, 'policy', 'policies')}
      {set_hash !== null && (
        <>
          , set <code>{shortHash(set_hash)}</code>
        </>
      )}
      {revision !== null && `, ${revision}`}.{' '}
      {Object.entries(computes).map(([name, count]) => (
        <>
          <a href={fleetLink({ ...query, status: name, page: 1 })}>
            {numberWords(count)} {name}
          </a>
          ,{' '}
        </>
      ))}
      {numberWords(fleet.totals.active)} active at {cuWords(fleet.totals)}.
      {read < listed && (
        <>
          {' '}
          <strong>
            Of {plural(listed, 'project')}, {numberWords(read)} read: what is shown is without the others.
          </strong>
        </>
      )}
    </p>
  );
}

interface CostsProps {
  costs: CostsDocument | null;
  detail: CostDetailDocument | null;
  owner: string | undefined;
}

function Costs({ costs, detail, owner }: CostsProps) {
  if (!costs) return detail ? <p class="dim">Known of all computes or those of an owner.</p> : <NotMeasured />;
  const { total, known_until: until, from } = costs;
  const [amount, unit] = total.usd === null ? ([total.cu_hours, 'cu_hours'] as const) : ([total.usd, 'usd'] as const);
  return (
    <>
      <p>
        <strong class="figure">{amountWords(amount, unit)}</strong> this month{owner !== undefined && ` of ${owner}`}
        <br />
        {projectedWords(total)}
      </p>
      {detail && <MonthLine days={daysOf(detail, owner)} costs={costs} />}
      <p class="dim">
        Compute only,{' '}
        {until < from ? (
          'nothing known yet'
        ) : (
          <>
            known until <Minute iso={until} />
          </>
        )}
        {total.unknown_hours > 0 && `; ${plural(Math.round(total.unknown_hours), 'hour')} unknown`}.{' '}
        <a href={addressOf('/cost', { owner })}>By day and project</a>
      </p>
    </>
  );
}

/** In observe mode the saving that enforcing would have made; in enforce mode an estimate of this moment, and that only a trial proves savings. */
function Saved({
  status: { costs, mode },
  now,
  owner,
}: {
  status: StatusDocument;
  now: FleetDocument['saved_now'];
  owner: string | undefined;
}) {
  const saved = costs?.would_have_saved;
  const more = addressOf('/recommend', { owner });
  if (saved)
    return (
      <>
        <WouldHaveSaved {...saved} />
        <p class="dim">
          Rests on {plural(saved.computes, 'compute')} with {numberWords(Math.round(saved.used_cu_hours))} measured
          CU-hours, each hour replayed with the sizes and timeouts that policies want
          {saved.parts.some(({ figure }) => figure === 'at_least') && '; of shorter timeouts the low end is promised'}.{' '}
          <a href={more}>What would save more</a>
        </p>
      </>
    );
  return (
    <>
      {mode !== 'observe' && now.computes > 0 && <SavedNow {...now} />}
      <p class="dim">
        {whyNotSaved(mode, owner)} <a href={more}>What would save more</a>
      </p>
    </>
  );
}

function SavedNow({ computes, low_cu: low, high_cu: high }: FleetDocument['saved_now']) {
  const range = savedRange({ low, high }, numberWords, ' CU');
  return (
    <p>
      <strong class="figure">{low < 0 ? range : `${range} saved`}</strong> at this moment: the{' '}
      {plural(computes, 'compute')} that policies size, against their baselines, by sizes and states
    </p>
  );
}

export function whyNotSaved(mode: StatusDocument['mode'], owner: string | undefined): string {
  if (mode !== 'observe') return 'Only a trial proves what enforcing saves: see ebb savings.';
  if (owner !== undefined) return 'Known for the whole fleet only.';
  return 'Not known yet: measured usage is replayed with what policies want.';
}

/** Later hours are only counted. */
const HOURS_SHOWN = 5;
const OWNERS_SHOWN = 3;

/** The next change of each compute, by hour and owner. */
function Next({ status, fleet, query }: Omit<OverviewProps, 'costs'>) {
  const { upcoming, overdue, known, at } = fleet;
  if (known === 0 && upcoming.length === 0) return <p class="dim">No compute is known yet.</p>;
  const observed = status.waiting.find(({ reason }) => reason === 'observe')?.computes ?? 0;
  return (
    <>
      {overdue.first !== null && (
        <p class="differs">
          {numberWords(overdue.computes)} overdue since <Instant iso={overdue.first} now={at} />
        </p>
      )}
      {observed > 0 && (
        <p>
          <a href={fleetLink({ ...query, reason: 'observe', page: 1 })}>{plural(observed, 'compute')}</a> would be
          changed, at once or after a wait, if ebb did not only observe
        </p>
      )}
      {upcoming.length > 0 ? (
        <Upcoming fleet={fleet} query={query} />
      ) : (
        <p>No policy changes anything{overdue.first === null && observed === 0 ? '' : ' else'} within a day.</p>
      )}
    </>
  );
}

function Upcoming({ fleet: { upcoming, at }, query }: Pick<OverviewProps, 'fleet' | 'query'>) {
  const most = Math.max(...upcoming.map(({ computes }) => computes));
  const later = upcoming.slice(HOURS_SHOWN);
  const inOrder = (owner = query.owner) => fleetLink({ ...query, owner, sort: 'next', page: 1 });
  return (
    <>
      <ul class="upcoming">
        {upcoming.slice(0, HOURS_SHOWN).map(({ first, last, computes, owners }) => (
          <li>
            <Instant iso={first} until={last} now={at} />{' '}
            <span>
              {owners.slice(0, OWNERS_SHOWN).map(({ owner, computes: count }, index) => (
                <>
                  {index > 0 && ', '}
                  <a href={inOrder(owner)}>{owner}</a> {numberWords(count)}
                </>
              ))}
              {owners.length > OWNERS_SHOWN && `, ${plural(owners.length - OWNERS_SHOWN, 'other owner')}`}
            </span>
            <svg class="share" aria-hidden="true" width="100%" height="6">
              <rect class="min" width={`${(100 * computes) / most}%`} height="6" />
            </svg>
          </li>
        ))}
      </ul>
      <p class="dim">
        The next change of each compute, within a day
        {later.length > 0 && `; ${numberWords(later.reduce((sum, { computes }) => sum + computes, 0))} later`}.{' '}
        <a href={inOrder()}>In order</a>
      </p>
    </>
  );
}

/** Further lines are only counted. */
const NEEDS_SHOWN = 6;

interface Need {
  words: string;
  href: string;
}

function Attention({ status, owner }: { status: StatusDocument; owner: string | undefined }) {
  const needs = needsOf(status, owner);
  if (needs.length === 0 && status.unread_projects) return <p class="dim">Nothing in what was read so far.</p>;
  if (needs.length === 0) return <p class="fine">Nothing needs attention.</p>;
  return (
    <ul class="needs">
      {needs.slice(0, NEEDS_SHOWN).map(({ words, href }) => (
        <li>
          <a href={href}>{words}</a>
        </li>
      ))}
      {needs.length > NEEDS_SHOWN && <li>and {numberWords(needs.length - NEEDS_SHOWN)} more</li>}
    </ul>
  );
}

/** Problems for people, with links to them. */
function needsOf(status: StatusDocument, owner: string | undefined): Need[] {
  const { readiness, freezes, staged, staged_teams, policy_problems, degraded, stopped_fights, unmet_headroom } =
    status;
  const { refused_projects: refused } = status;
  const notices = (count: number, one: string, many: string): Need[] =>
    count === 0 ? [] : [{ words: listedCount(count, one, many), href: '#notices' }];
  const cost = addressOf('/cost', { owner });
  const anomalies = (status.costs?.owners ?? []).filter(({ anomaly }) => anomaly !== null);
  return [
    ...notices((unmet_headroom ?? []).length, 'compute lacks connections', 'computes lack connections'),
    ...notices(
      (readiness?.checks ?? []).filter(({ ok }) => !ok).length,
      'part of ebb is not ready',
      'parts of ebb are not ready',
    ),
    ...notices(
      new Set(refused?.map((one) => one.project_id)).size,
      "project can't be managed",
      "projects can't be managed",
    ),
    ...notices((policy_problems ?? []).length, 'problem of policies', 'problems of policies'),
    ...notices(degraded.length, 'compute is degraded', 'computes are degraded'),
    ...notices(stopped_fights.length, 'compute is left alone after a fight', 'computes are left alone after a fight'),
    ...notices((status.guard_floors ?? []).length, 'lowering was taken back', 'lowerings were taken back'),
    ...notices(
      Number(staged !== null) + staged_teams.length,
      'policy set waits for approval',
      'policy sets wait for approval',
    ),
    ...notices(freezes.length, 'freeze holds changes back', 'freezes hold changes back'),
    ...notices(
      status.dead_notifications.reduce((sum, { count }) => sum + count, 0),
      'notification could not be sent',
      'notifications could not be sent',
    ),
    ...budgetsOf(status, owner).flatMap(({ budget, spent, projected, month }): Need[] => {
      const share = (amount: number) => percentWords(amount / month.amount);
      if (isOver({ spent, month }))
        return [{ words: `Budget ${budget} is over: ${share(spent ?? 0)} spent`, href: cost }];
      if (projected === null || projected.mid <= month.amount) return [];
      return [{ words: `Budget ${budget} will be over: ${share(projected.mid)} projected`, href: cost }];
    }),
    ...anomalies.map(({ owner: name, anomaly }) => ({
      words: `${name} used ${numberWords(anomaly?.cu_hours ?? 0)} CU-hours on ${anomaly?.day}, ordinarily at most ${numberWords(anomaly?.ordinary_cu_hours ?? 0)}`,
      href: addressOf('/cost', { owner: name }),
    })),
  ];
}

/** All budgets, or those of an owner, by spent share. */
export function budgetsOf({ budgets, policies }: StatusDocument, owner: string | undefined): StatusDocument['budgets'] {
  const ofOwner = new Set((policies ?? []).filter((policy) => policy.owner === owner).map(({ name }) => name));
  const shown = owner === undefined ? budgets : budgets.filter(({ budget }) => ofOwner.has(budget));
  const share = ({ spent, month }: StatusDocument['budgets'][number]) => (spent ?? 0) / month.amount;
  return shown.toSorted((a, b) => share(b) - share(a));
}
