import type { SettingsDocument, Staleness } from '../../../ports/documents.ts';
import type { ComputeDetailDocument, TraceStepDocument } from '../../../ports/status-page.ts';
import { Decisions } from './decisions.tsx';
import { HoldForm, Holds, type TokenNeed, type Written } from './hold-form.tsx';
import { wholePage } from './layout.tsx';
import { NextChange } from './next-change.tsx';
import { Badge, Message, Operations, Section, Table } from './parts.tsx';
import { WeekChart } from './week.tsx';
import { sizeWords, suspendWords, timeoutWords } from './words.ts';

export interface ComputeViewProps {
  compute: ComputeDetailDocument;
  /** The action that was just taken. */
  done?: string | undefined;
  written?: Written;
  problem?: string | undefined;
  token: TokenNeed;
  stale?: Staleness | undefined;
}

/** `/computes/ID`: one compute, why it has what it has, and what comes. */
export function computeView({ compute, done, written = {}, problem, token, stale }: ComputeViewProps) {
  const { compute_id: id, at } = compute;
  return wholePage({
    title: id,
    refreshes: `/computes/${id}`,
    ...{ at, stale },
    children: (
      <>
        <h1>{id}</h1>
        {done !== undefined && (
          <p class="notice good" role="status">
            {done}
          </p>
        )}
        <div id="facts" data-live>
          <Facts compute={compute} />
        </div>
        <Section id="week" title="The week ahead">
          <WeekChart week={compute.week} now={at} />
        </Section>
        <Section id="why" title="Why">
          <Trace trace={compute.trace} />
        </Section>
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
  const { project_name, project_id, branch_name, branch_id, region_id, current, type, disabled, at } = compute;
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
      <dd>{settingsWords(current)}</dd>
      <dt>Wanted</dt>
      <dd>{settingsWords(compute.desired)}</dd>
      <dt>Before ebb</dt>
      <dd>{settingsWords(compute.baseline)}</dd>
      <dt>Next</dt>
      <dd>
        <NextChange row={compute} now={at} />
      </dd>
    </dl>
  );
}

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
        <Message text={`${step.message}${step.mode === 'observe' ? ', only observes' : ''}`} />,
        valueWords(step),
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
