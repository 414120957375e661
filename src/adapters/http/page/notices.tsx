import type { Child } from 'hono/jsx';
import { firstNames } from '../../../common/names.ts';
import { groupBy } from '../../../domain/grouping.ts';
import type { FreezeDocument, RefusedProjectDocument, StatusDocument } from '../../../ports/documents.ts';
import type { FleetQuery } from '../../../ports/status-page.ts';
import { fleetLink } from './fleet-filters.tsx';
import { amountWords, ComputeLink, freezeWords, Instant, listedCount, Message, numberWords } from './parts.tsx';

/** Problems, and freezes. */
export function Notices({ status, now }: { status: StatusDocument; now: string }) {
  const { readiness, freezes, staged, policy_problems: problems } = status;
  return (
    <>
      <ComputeNotice kind="bad" title="Not enough connections" computes={problemsOf(status.unmet_headroom)} />
      {readiness?.checks
        .filter(({ ok }) => !ok)
        .map(({ name, message }) => (
          <Notice kind="bad" title={`Not ready: ${name}`}>
            <Message text={message} now={now} />
          </Notice>
        ))}
      {status.api_limits?.map(({ account, message }) => (
        <Notice kind="warn" title={`Rate limit of ${account}`}>
          <Message text={message} now={now} />
        </Notice>
      ))}
      <Refused refused={status.refused_projects ?? []} now={now} />
      <Freezes freezes={freezes} now={now} />
      {[staged ?? [], status.staged_teams].flat().map(({ message }) => (
        <Notice kind="warn" title="A policy set is staged">
          <Message text={message} />
        </Notice>
      ))}
      {problems?.map((problem) => (
        <Notice kind="bad" title="Policies">
          {problem}
        </Notice>
      ))}
      <ComputeNotice kind="bad" title="Degraded" computes={problemsOf(status.degraded)} />
      <ComputeNotice
        kind="warn"
        title="Taken back"
        computes={(status.guard_floors ?? []).map(({ compute_id: id, message, cost_month: cost }) => ({
          id,
          message: cost ? `${message}; it costs ${floorCostWords(cost)} a month` : message,
          command: ['to lower it again: ', <code>ebb release {id} --guard</code>],
        }))}
      />
      <ComputeNotice
        kind="warn"
        title="Left alone"
        computes={status.stopped_fights.map(({ compute_id: id, fields }) => ({
          id,
          message: `${fields.join(' and ')} changed back too often`,
          command: ['to go on: ', <code>ebb release {id}</code>],
        }))}
      />
    </>
  );
}

/** Requests that the control API refuses; projects with the same answer share a notice. */
export function Refused({ refused, now }: { refused: readonly RefusedProjectDocument[]; now: string }) {
  return (
    <>
      {[...groupBy(refused, ({ message }) => message)].map(([message, alike]) => (
        <Notice
          kind="bad"
          title={alike.length === 1 ? `Project ${alike[0]?.project_name}` : listedCount(alike.length, 'project')}
        >
          <Message text={message} />; since <Instant iso={alike[0]?.since ?? now} now={now} />
          {alike.length > 1 && `: ${firstNames(alike.map((one) => one.project_name))}`}
        </Notice>
      ))}
    </>
  );
}

interface ComputeProblem {
  id: string;
  message: string;
  /** The command that ends the problem. */
  command?: Child;
}

function problemsOf(all: StatusDocument['unmet_headroom']): ComputeProblem[] {
  return (all ?? []).map(({ compute_id: id, message }) => ({ id, message }));
}

/** One notice for all computes with a problem: an outage may concern all of them. Several are counted, and can be opened. */
function ComputeNotice(props: { kind: 'bad' | 'warn'; title: string; computes: readonly ComputeProblem[] }) {
  const { kind, title, computes } = props;
  const alike = [...groupBy(computes, ({ message }) => message).values()].toSorted((a, b) => b.length - a.length);
  const first = alike[0]?.[0];
  if (!first) return null;
  if (computes.length === 1)
    return (
      <Notice kind={kind} title={title}>
        <Problem problem={first} />
      </Notice>
    );
  const all = (
    <details id={`all-${title.toLowerCase().replaceAll(' ', '-')}`}>
      <summary>
        Which<span class="unseen">: {title}</span>
      </summary>
      <ul>
        {alike.flat().map((problem) => (
          <li>
            {alike.length === 1 && !problem.command ? <ComputeLink id={problem.id} /> : <Problem problem={problem} />}
          </li>
        ))}
      </ul>
    </details>
  );
  return (
    <Notice kind={kind} title={title} more={all}>
      {listedCount(computes.length, 'compute')}
      {alike.length > 1 && [', such as ', <ComputeLink id={first.id} />]}: <Message text={first.message} />
    </Notice>
  );
}

function Problem({ problem: { id, message, command } }: { problem: ComputeProblem }) {
  return (
    <>
      <ComputeLink id={id} />: <Message text={message} />
      {command && ['; ', command]}
    </>
  );
}

/** Freezes by people, each with its reason, its end, and the command that ends it. */
export function Freezes({ freezes, now }: { freezes: readonly FreezeDocument[]; now: string }) {
  return (
    <>
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
    </>
  );
}

interface GuardsProps {
  status: StatusDocument;
  owner: string | undefined;
  now: string;
}

/** The guards, or those of one owner: their last verdicts, the lowerings that they hold back, and their watches. */
export function Guards({ status, owner, now }: GuardsProps) {
  const ownerOf = new Map(status.policies?.map((policy) => [policy.name, policy.owner]));
  const isShown = ({ guard }: { guard: string }) => owner === undefined || (ownerOf.get(guard) ?? owner) === owner;
  // A guard without an owner is shown once it was asked about a compute of this owner.
  const isAboutOwner = ({ guard, asked_at }: { guard: string; asked_at: string | null }) =>
    owner === undefined || ownerOf.get(guard) === owner || asked_at !== null;
  const guards = status.guards?.filter((one) => isShown(one) && isAboutOwner(one));
  const watches = status.guard_watches?.filter(isShown);
  if (!guards || guards.length === 0) return <p class="dim">No policy of {owner} is a guard.</p>;
  return (
    <>
      <p class="dim">Their last verdicts on awake computes:</p>
      <ul>
        {guards.map((one) => (
          <li>
            <strong>{one.guard}</strong>: {guardWords(one)},{' '}
            {one.asked_at === null ? 'not asked yet' : ['asked ', <Instant iso={one.asked_at} now={now} />]}
          </li>
        ))}
      </ul>
      {watches && watches.length > 0 && (
        <ul>
          {watches.map(({ compute_id: id, guard, message }) => (
            <li>
              <ComputeLink id={id} />, by {guard}: <Message text={message} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function guardWords(one: NonNullable<StatusDocument['guards']>[number]): string {
  const [healthy, bad, unknown] = [one.healthy, one.bad, one.unknown].map(numberWords);
  const actions = [one.held_back > 0 && `holds back ${one.held_back}`, one.watched > 0 && `watches ${one.watched}`];
  return [`${healthy} healthy, ${bad} bad, ${unknown} unknown`, ...actions.filter(Boolean)].join('; ');
}

type FloorCost = NonNullable<NonNullable<StatusDocument['guard_floors']>[number]['cost_month']>;

function floorCostWords({ cu_hours: hours, usd }: FloorCost): string {
  return usd ? amountWords(usd.mid, 'usd') : amountWords(hours.mid, 'cu_hours');
}

/** Counts of waiting changes by gate, with links to their computes. */
export function Waiting({ status: { waiting }, query }: { status: StatusDocument; query: FleetQuery }) {
  if (waiting.length === 0) return <p class="dim">Nothing waits.</p>;
  return (
    <ul class="counts">
      {waiting.map(({ reason, computes }) => (
        <li>
          <a href={fleetLink({ ...query, reason, page: 1 })} class="count">
            <strong>{numberWords(computes)}</strong> {reason.replaceAll('_', ' ')}
          </a>
        </li>
      ))}
    </ul>
  );
}

export function Notice({
  kind,
  title,
  children,
  more,
}: {
  kind: 'bad' | 'warn' | 'stop';
  title: string;
  children?: unknown;
  more?: Child;
}) {
  return (
    <div class={`notice ${kind}`}>
      <strong>{title}</strong> <span>{children}</span>
      {more}
    </div>
  );
}
