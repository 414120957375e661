import type { FreezeDocument, StatusDocument } from '../../../ports/documents.ts';
import type { FleetQuery } from '../../../ports/status-page.ts';
import { fleetLink } from './fleet-filters.tsx';
import { amountWords, ComputeLink, freezeWords, Instant, Message, numberWords } from './parts.tsx';

/** Problems, and freezes. */
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
      {degraded.map(({ compute_id: id, message }) => (
        <Notice kind="bad" title="Degraded">
          <ComputeLink id={id} />: <Message text={message} />
        </Notice>
      ))}
      {status.guard_floors?.map(({ compute_id: id, message, cost_month: cost }) => (
        <Notice kind="warn" title="Taken back">
          <ComputeLink id={id} />: <Message text={message} />
          {cost && <>; it costs {floorCostWords(cost)} a month</>}; to lower it again:{' '}
          <code>ebb release {id} --guard</code>
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

/** Who has frozen what, why, until when, and how to end it. */
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

/** The guards, of one owner if given: their last verdicts, the lowerings that they hold back, and their watches. */
export function Guards({ status, owner, now }: GuardsProps) {
  const ownerOf = new Map(status.policies?.map((policy) => [policy.name, policy.owner]));
  const isShown = ({ guard }: { guard: string }) => owner === undefined || (ownerOf.get(guard) ?? owner) === owner;
  // A guard without an owner is shown once it was asked about a compute of this owner.
  const isAboutThem = ({ guard, asked_at }: { guard: string; asked_at: string | null }) =>
    owner === undefined || ownerOf.get(guard) === owner || asked_at !== null;
  const guards = status.guards?.filter((one) => isShown(one) && isAboutThem(one));
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
  const said = [one.healthy, one.bad, one.unknown].map(numberWords);
  const does = [one.held_back > 0 && `holds back ${one.held_back}`, one.watched > 0 && `watches ${one.watched}`];
  return [`${said[0]} healthy, ${said[1]} bad, ${said[2]} unknown`, ...does.filter(Boolean)].join('; ');
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
}: {
  kind: 'bad' | 'warn' | 'stop';
  title: string;
  children?: unknown;
}) {
  return (
    <div class={`notice ${kind}`}>
      <strong>{title}</strong> <span>{children}</span>
    </div>
  );
}
