import type { BudgetDocument, CostsDocument } from '../../../ports/cost-documents.ts';
import type { StatusDocument } from '../../../ports/documents.ts';
import type { FleetDocument } from '../../../ports/status-page.ts';
import { costsOf, cuWords } from './fleet-filters.tsx';
import { ComputeLink, costWords, freezeWords, Instant, Message, Minute, plural, savedWords } from './parts.tsx';

interface SummaryProps {
  status: StatusDocument;
  fleet: FleetDocument;
  /** The list is narrowed to this owner. */
  owner: string | undefined;
}

/** Mode, and how many computes have which status. */
export function Summary({ status, fleet, owner }: SummaryProps) {
  const { mode, computes, set_hash, revision, policies } = status;
  const words = mode === 'enforce' ? 'computes are changed' : 'nothing is written';
  return (
    <>
      <p class="mode">
        <span class={`badge ${mode}`}>{mode}</span> {words}; {plural(policies?.length ?? 0, 'policy', 'policies')}
        {set_hash !== null && (
          <>
            , set <code>{set_hash.slice(0, 12)}</code>
          </>
        )}
        {revision !== null && `, ${revision}`}
      </p>
      <p>
        {isFine(status) ? 'Nothing needs attention.' : 'See the notices below.'} <NextHour fleet={fleet} />{' '}
        <Waits status={status} /> Active now: {fleet.totals.active.toLocaleString('en')}, at {cuWords(fleet.totals)}.
      </p>
      {status.costs && <MonthCosts costs={status.costs} of={owner} />}
      {owner === undefined && <Budgets budgets={status.budgets} />}
      <ul class="counts">
        {Object.entries(computes).map(([name, count]) => (
          <li>
            <a href={`/?status=${name}`} class={`count ${name}`}>
              <strong>{count.toLocaleString('en')}</strong> {name}
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The used share of each budget, and its active steps. */
function Budgets({ budgets }: { budgets: readonly BudgetDocument[] }) {
  if (budgets.length === 0) return null;
  return (
    <p class="costs">
      {budgets.map(({ budget, account, month, spent, projected, limiting }, index) => (
        <>
          {index > 0 && <br />}
          Budget {budget} of {account}:{' '}
          {spent === null ? 'its price is unknown' : `${percent(spent / month.amount)} spent`}
          {projected &&
            `, ${percent(projected.low / month.amount)} to ${percent(projected.high / month.amount)} projected`}
          {limiting.length > 0 && `; limited since ${limiting[0]?.from.slice(0, 10)}`}.
        </>
      ))}
    </p>
  );
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

/** This month's cost, of all owners or of one; the list's totals show it by owner. */
function MonthCosts({ costs, of }: { costs: CostsDocument; of: string | undefined }) {
  const { total, from, known_until: until } = costs;
  const owners = costs.owners.filter(({ owner }) => of === undefined || owner === of);
  const anomalies = owners.filter(({ anomaly }) => anomaly !== null);
  const unknown = of === undefined ? total.unknown_hours : owners.reduce((sum, one) => sum + one.unknown_hours, 0);
  // The saving that enforcing would have made is only known in total.
  const saved = of === undefined ? costs.would_have_saved : null;
  return (
    <p class="costs">
      This month{of !== undefined && ` of ${of}`}: {of === undefined ? costWords(total) : costsOf(costs, of)}
      {unknown > 0 && `; ${plural(Math.round(unknown), 'hour')} unknown`}.{' '}
      <span class="dim">
        Compute only,{' '}
        {until < from ? (
          'nothing known yet'
        ) : (
          <>
            known until <Minute iso={until} />
          </>
        )}
        .
      </span>{' '}
      <a href="/?group=owner">By owner</a>
      {saved && (
        <>
          <br />
          Enforcing would have saved {savedWords(saved)} of the {saved.used_cu_hours.toLocaleString('en')} CU-hours of
          the last two weeks.
        </>
      )}
      {anomalies.map(({ owner, anomaly }) => (
        <>
          <br />
          Spend anomaly: <a href={`/?owner=${encodeURIComponent(owner)}`}>{owner}</a> used {anomaly?.cu_hours} CU-hours
          on {anomaly?.day}, ordinarily at most {anomaly?.ordinary_cu_hours}.
        </>
      ))}
    </p>
  );
}

function isFine({
  readiness,
  freezes,
  staged,
  policy_problems,
  degraded,
  stopped_fights,
  unmet_headroom,
}: StatusDocument) {
  const lists = [
    freezes,
    policy_problems,
    degraded,
    stopped_fights,
    unmet_headroom,
    readiness?.checks.filter(({ ok }) => !ok),
  ];
  return !staged && lists.every((list) => (list ?? []).length === 0);
}

function NextHour({ fleet: { next_hour: next, at } }: { fleet: FleetDocument }) {
  if (next.first === null) return <>No policy changes anything within an hour.</>;
  return (
    <>
      Within an hour policies change {plural(next.computes, 'compute')}, the first at{' '}
      <Instant iso={next.first} now={at} />.
    </>
  );
}

/** Counts changes that wait for a gate; observed changes don't wait. */
function Waits({ status: { waiting } }: { status: StatusDocument }) {
  const gates = waiting.filter(({ reason }) => reason !== 'observe');
  const computes = gates.reduce((sum, one) => sum + one.computes, 0);
  if (computes === 0) return null;
  return <>{plural(computes, 'compute waits', 'computes wait')} for a change.</>;
}

/** Problems, and what people have stopped; empty where all is well. */
export function Notices({ status, now }: { status: StatusDocument; now: string }) {
  const { readiness, freezes, staged, policy_problems: problems, degraded, stopped_fights: fights } = status;
  return (
    <>
      {status.unmet_headroom?.map(({ compute_id: id, message }) => (
        <Notice kind="bad" title="Not enough connections">
          <ComputeLink id={id} />: <Message text={message} />
        </Notice>
      ))}
      {readiness?.checks
        .filter(({ ok }) => !ok)
        .map(({ name, message }) => (
          <Notice kind="bad" title={`Not ready: ${name}`}>
            <Message text={message} />
          </Notice>
        ))}
      {freezes.map((freeze) => (
        <Notice kind="stop" title={`Frozen: ${freezeWords(freeze)}`}>
          by {freeze.owner}: {freeze.reason}
          {freeze.expires_at !== null && (
            <>
              ; until <Instant iso={freeze.expires_at} now={now} />
            </>
          )}
          . To end it: <code>ebb unfreeze {freeze.id}</code>
        </Notice>
      ))}
      {staged && (
        <Notice kind="warn" title="A policy set is staged">
          <Message text={staged.message} />
        </Notice>
      )}
      {problems?.map((problem) => (
        <Notice kind="bad" title="Policies">
          {problem}
        </Notice>
      ))}
      {degraded.map(({ compute_id: id, message }) => (
        <Notice kind="bad" title="Degraded">
          <ComputeLink id={id} />: <Message text={message} />
        </Notice>
      ))}
      {fights.map(({ compute_id: id, fields }) => (
        <Notice kind="warn" title="Left alone">
          <ComputeLink id={id} />: {fields.join(' and ')} changed back too often; to go on:{' '}
          <code>ebb release {id}</code>
        </Notice>
      ))}
    </>
  );
}

export function Waiting({ status: { waiting } }: { status: StatusDocument }) {
  if (waiting.length === 0) return <p class="dim">Nothing waits.</p>;
  return (
    <ul class="counts">
      {waiting.map(({ reason, computes }) => (
        <li>
          <a href={`/?reason=${reason}`} class="count">
            <strong>{computes.toLocaleString('en')}</strong> {reason.replaceAll('_', ' ')}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Notice({ kind, title, children }: { kind: 'bad' | 'warn' | 'stop'; title: string; children?: unknown }) {
  return (
    <div class={`notice ${kind}`}>
      <strong>{title}</strong> <span>{children}</span>
    </div>
  );
}
