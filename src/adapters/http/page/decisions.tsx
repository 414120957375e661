import type { DecisionDocument, SettingsDocument } from '../../../ports/documents.ts';
import { Badge, ComputeLink, Instant, Message, sizeWords, Table, timeoutWords } from './parts.tsx';

interface DecisionsProps {
  decisions: readonly DecisionDocument[];
  now: string;
}

/** The history of one compute, newest first, each entry with its reasons. */
export function Decisions({ decisions, now }: DecisionsProps) {
  if (decisions.length === 0) return <p class="dim">Nothing has happened yet.</p>;
  return (
    <Table
      caption="Recent decisions, newest first"
      head={['When', 'What', 'Change', 'Why']}
      rows={decisions.map((decision) => [
        <Instant iso={decision.at} now={now} />,
        <Badge kind={kindOf(decision)} />,
        changeWords(decision),
        <Why decision={decision} />,
      ])}
    />
  );
}

/** The fleet's history beside its list: an entry in two lines. */
export function DecisionList({ decisions, now }: DecisionsProps) {
  if (decisions.length === 0) return <p class="dim">Nothing has happened yet.</p>;
  return (
    <ul class="log">
      {decisions.map((decision) => (
        <li>
          <Instant iso={decision.at} now={now} />{' '}
          {decision.compute_id === '' ? 'the fleet' : <ComputeLink id={decision.compute_id} />}{' '}
          <Badge kind={kindOf(decision)} /> {changeWords(decision)}{' '}
          <span class="dim">
            <Message text={reasonOf(decision)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Its last reason, without what changes. */
function reasonOf({ reasons }: DecisionDocument): string {
  const { message = '' } = reasons.findLast(({ code }) => code !== 'observe') ?? {};
  return message.replace(/^(?:size|suspend_after) .+? → .+?: /, '');
}

/** A decision that was held back waits or was only observed; this is not about holds. */
function kindOf({ kind, reasons }: DecisionDocument): string {
  if (kind !== 'held') return kind;
  return reasons.some(({ code }) => code === 'observe') ? 'observed' : 'waits';
}

function Why({ decision: { reasons, policy, who } }: { decision: DecisionDocument }) {
  const named = [
    ...(policy === null ? [] : [policy.startsWith('hold ') ? policy : `policy ${policy}`]),
    ...(who === null ? [] : [`by ${who}`]),
  ];
  return (
    <>
      {reasons.map(({ message, code }) => (
        <p>
          <Message text={message} /> <code class="dim">{code}</code>
        </p>
      ))}
      {named.length > 0 && <p class="dim">{named.join(', ')}</p>}
    </>
  );
}

function changeWords({ from, to }: DecisionDocument): string {
  if (!to) return '–';
  const parts = [
    ...(sizeOf(to) === undefined ? [] : [arrow(from && sizeOf(from), sizeOf(to))]),
    ...(to.suspend_timeout_seconds === undefined
      ? []
      : [`suspend timeout ${arrow(timeoutOf(from), timeoutWords(to.suspend_timeout_seconds))}`]),
  ];
  return parts.join(', ') || '–';
}

function sizeOf({ min_cu, max_cu }: Partial<SettingsDocument>): string | undefined {
  return min_cu === undefined || max_cu === undefined ? undefined : sizeWords({ min_cu, max_cu });
}

function timeoutOf(settings: Partial<SettingsDocument> | null): string | undefined {
  const seconds = settings?.suspend_timeout_seconds;
  return seconds === undefined ? undefined : timeoutWords(seconds);
}

function arrow(before: string | null | undefined, after: string | undefined): string {
  return before === null || before === undefined ? `${after}` : `${before} → ${after}`;
}
