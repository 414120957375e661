import type { SettingsDocument, Staleness } from '../../../ports/documents.ts';
import type {
  ComputeDetailDocument,
  FleetRowDocument,
  SegmentDocument,
  TraceStepDocument,
} from '../../../ports/status-page.ts';
import { DayBars, summed } from './charts.tsx';
import { Decisions } from './decisions.tsx';
import { HoldForm, Holds, type TokenNeed, type Written } from './hold-form.tsx';
import { htmlPage } from './layout.tsx';
import { Freezes, Notice, Refused } from './notices.tsx';
import {
  amountWords,
  Badge,
  Instant,
  Message,
  Minute,
  Operations,
  plural,
  Section,
  sizeWords,
  suspendWords,
  Table,
  timeoutWords,
} from './parts.tsx';
import { WeekChart } from './week.tsx';

/** `/computes/ID`: one compute, the reasons of its settings, and its next changes. */
export function computeView(props: {
  compute: ComputeDetailDocument;
  /** Confirms the action that was just taken. */
  done?: string | undefined;
  written?: Written;
  problem?: string | undefined;
  token: TokenNeed;
  stale?: Staleness | undefined;
}) {
  const { compute, done, written = {}, problem, token, stale } = props;
  const { compute_id: id, at } = compute;
  return htmlPage({
    title: id,
    refreshes: `/computes/${id}`,
    at,
    stale,
    children: (
      <>
        <h1>{id}</h1>
        {done !== undefined && (
          <p class="notice good" role="status">
            {done}
          </p>
        )}
        <div id="facts" data-live>
          <Refused refused={compute.refused} now={at} />
          <Freezes freezes={compute.freezes} now={at} />
          {compute.freezing_policies.map(({ policy, until, allow_raise: allowsRaise }) => (
            <Notice kind="stop" title={`Frozen by the policy ${policy}`}>
              {until !== null && (
                <>
                  until <Instant iso={until} now={at} />
                </>
              )}
              {allowsRaise && ', raises allowed'}
            </Notice>
          ))}
          <Facts compute={compute} />
        </div>
        <Section id="cost" title="What its branch costs">
          <BranchCost cost={compute.cost} />
        </Section>
        <Section id="week" title="The week ahead">
          <WeekChart week={compute.week} now={at} />
        </Section>
        <Section id="why" title="Why">
          <Trace trace={compute.trace} />
        </Section>
        {compute.guards && (
          <Section id="guards" title="Guards">
            <Guards compute={compute} />
          </Section>
        )}
        <Section id="holds" title="Holds">
          <Holds holds={compute.holds} now={at} none="None. The form below sets one." />
        </Section>
        <section aria-labelledby="hold-title">
          <h2 id="hold-title">Set a hold</h2>
          <p class="dim">It comes before policies for a while, then ends by itself.</p>
          <HoldForm computeId={id} written={written} problem={problem} token={token} />
        </section>
        <Section id="operations" title="Operations in flight">
          <Operations operations={compute.operations} now={at} />
        </Section>
        <Section id="decisions" title="Recent decisions">
          <Decisions decisions={compute.decisions} now={at} />
        </Section>
      </>
    ),
  });
}

function Facts({ compute }: { compute: ComputeDetailDocument }) {
  const { project_name, project_id, branch_name, branch_id, region_id, current, type, disabled, read_at, at } = compute;
  return (
    <dl class="facts">
      <dt>Status</dt>
      <dd>
        <Badge kind={compute.status} /> {current.state}
        {disabled && ', disabled'}
      </dd>
      <dt>Where</dt>
      <dd>
        {project_name} ({project_id}), branch {branch_name ?? branch_id}, {region_id},{' '}
        {type === 'read_only' ? 'replica' : 'read and write'}
      </dd>
      <dt>Has</dt>
      <dd>
        {settingsWords(current)}
        {read_at !== null && (
          <span class="dim">
            , read <Instant iso={read_at} now={at} />
          </span>
        )}
      </dd>
      <dt>Wanted</dt>
      <dd>{settingsWords(wantedNow(compute, at))}</dd>
      <dt>Baseline</dt>
      <dd>{settingsWords(compute.baseline)}</dd>
      <dt>Next</dt>
      <dd>
        <NextChange row={compute} now={at} />
      </dd>
    </dl>
  );
}

/** Usage is measured for a branch with all its computes. */
function BranchCost({ cost }: { cost: ComputeDetailDocument['cost'] }) {
  if (cost === null) return <p class="dim">Usage of this branch is not measured.</p>;
  const { usd, cu_hours: hours, unknown_hours: unknown, known_until: until, first_day: firstDay } = cost;
  return (
    <>
      <p>
        This month {usd === null ? amountWords(hours, 'cu_hours') : amountWords(usd, 'usd')}
        {usd !== null && <span class="dim">, {amountWords(hours, 'cu_hours')}</span>}; known until{' '}
        <Minute iso={until} />
        {unknown > 0 && `; ${plural(Math.round(unknown), 'hour')} unknown`}.
      </p>
      <DayBars days={{ firstDay, ...summed([cost.days]) }} from={firstDay} />
    </>
  );
}

/** The last verdicts of guards, their watches, and the lowerings that they undid. */
function Guards({ compute }: { compute: ComputeDetailDocument }) {
  const { compute_id: id, guards = [], guard_finding: found, floors = [], at } = compute;
  return (
    <>
      <Table
        caption="The last verdicts of guards, and what they watch after a lowering"
        head={['Guard', 'Said', 'Asked', 'Watches it', 'If that hurts']}
        rows={guards.map(({ guard, verdict, watch, remedy }) => [
          guard,
          <>
            <Badge kind={verdict.state} /> <Message text={verdict.message} />
          </>,
          verdict.at === null ? 'not yet' : <Instant iso={verdict.at} now={at} />,
          watch === null ? 'no' : <Message text={watch.message} />,
          REMEDIES[remedy],
        ])}
      />
      {found && (
        <p>
          <Message text={found.message} />
        </p>
      )}
      {floors.map(({ field, guard, policy, since, until, in_effect: isInEffect }) => (
        <p>
          {FIELDS[field]} is kept as it was before {policy} lowered it, by {guard}, since <Minute iso={since} />, until{' '}
          {until !== null && (
            <>
              <Minute iso={until} /> or{' '}
            </>
          )}
          {policy} changes{!isInEffect && '; that changes nothing now'}. To lower it again:{' '}
          <code>ebb release {id} --guard</code>
        </p>
      ))}
    </>
  );
}

const REMEDIES = {
  notify: 'people are notified',
  undo: 'undone; a size when it next sleeps',
  undo_with_restart: 'undone; a size by a restart, which drops its connections',
} as const;

function settingsWords(settings: SettingsDocument): string {
  return `${sizeWords(settings)}, ${suspendWords(settings.suspend_timeout_seconds)}`;
}

const FIELDS: Readonly<Record<string, string>> = {
  size: 'Size',
  suspend_timeout: 'Suspends after',
  restart: 'Restart',
};

function Trace({ trace }: { trace: readonly TraceStepDocument[] }) {
  if (trace.length === 0) return <p class="dim">No policy has a proposal.</p>;
  return (
    <Table
      caption="What led to what is wanted, step by step"
      head={['Field', 'Step', 'Gives', 'Code']}
      rows={trace.map((step) => [
        FIELDS[step.group] ?? step.group,
        <p>
          <Message text={`${step.message}${step.mode === 'observe' ? ', only observes' : ''}`} />
        </p>,
        <span class="whole">{valueWords(step)}</span>,
        <code>{step.code}</code>,
      ])}
    />
  );
}

function valueWords({ after }: TraceStepDocument): string {
  if (after === undefined || after === null) return '–';
  if (typeof after === 'number') return timeoutWords(after);
  return 'min_cu' in after && 'max_cu' in after ? sizeWords(after as Pick<SettingsDocument, 'min_cu' | 'max_cu'>) : '–';
}

/** If a change fell due and is not decided yet, only the forecast knows what is wanted by now. */
export function wantedNow(row: FleetRowDocument, now: string): SettingsDocument {
  const [current] = row.week.state === 'known' ? row.week.segments : [];
  return isUndecided(row, now) && current ? current : row.desired;
}

function isUndecided({ next_change: change }: FleetRowDocument, now: string): boolean {
  return change !== null && Date.parse(change) <= Date.parse(now);
}

/** The change of a compute that is overdue, due or waiting, with its reason; then the next one in the forecast, with its policies. */
export function NextChange({ row, now }: { row: FleetRowDocument; now: string }) {
  return (
    <>
      <Due row={row} now={now} /> <Foreseen row={row} now={now} />
    </>
  );
}

function Due({ row, now }: { row: FleetRowDocument; now: string }) {
  const { verdict, reasons, until, overdue_since: since } = row;
  if (since !== null)
    return (
      <p class="due">
        overdue since <Instant iso={since} now={now} />
        {verdict === 'act' && [': ', <Message text={reasons[0]?.message ?? ''} />]}
      </p>
    );
  // In observe mode the column of wanted values shows the change; a line above the list says that nothing is written.
  if (verdict === 'none' || reasons.at(-1)?.code === 'observe') return null;
  if (verdict === 'act')
    return (
      <p class="due">
        due now: <Message text={reasons[0]?.message ?? ''} />
      </p>
    );
  return (
    <p class="due">
      waits{until !== null && [' until ', <Instant iso={until} now={now} />]}
      {/* The gate is the last reason. */}: <Message text={reasons.at(-1)?.message ?? ''} />
    </p>
  );
}

function Foreseen({ row, now }: { row: FleetRowDocument; now: string }) {
  const { week, next_change: change, reasons, verdict } = row;
  const [current, next] = week.state === 'known' ? week.segments : [];
  if (current && next) {
    return (
      <p>
        <Instant iso={next.from} now={now} />: {changeWords(current, next)}
        <span class="dim"> {next.policies.join(', ')}</span>
      </p>
    );
  }
  if (week.state === 'known') {
    return (
      <p class="dim">
        {verdict === 'none' && !isUndecided(row, now) ? (
          <Message text={reasons[0]?.message ?? ''} />
        ) : (
          'then nothing for a week'
        )}
      </p>
    );
  }
  if (change === null || isUndecided(row, now)) return null;
  return (
    <p>
      changes <Instant iso={change} now={now} />
    </p>
  );
}

function changeWords(before: SegmentDocument, after: SegmentDocument): string {
  const parts: string[] = [];
  if (sizeWords(before) !== sizeWords(after)) parts.push(sizeWords(after));
  if (before.suspend_timeout_seconds !== after.suspend_timeout_seconds)
    parts.push(timeoutWords(after.suspend_timeout_seconds));
  return parts.join(', ');
}
