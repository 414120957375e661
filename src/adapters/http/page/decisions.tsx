import { withOutcomes } from '../../../domain/records/outcomes.ts';
import type { DecisionDocument, SettingsDocument } from '../../../ports/documents.ts';
import { addressOf, Badge, ComputeLink, Instant, Message, sizeWords, Table, timeoutWords } from './parts.tsx';

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
      head={['When', 'What', 'Change', 'Why', 'Who']}
      rows={withOutcomes(decisions).map((decision) => [
        <Instant iso={decision.at} now={now} />,
        <KindLink decision={decision} />,
        changeWords(decision),
        <Why decision={decision} />,
        decision.who ?? 'ebb',
      ])}
    />
  );
}

/** The fleet's history, as a narrow list. */
export function DecisionList({ decisions, now }: DecisionsProps) {
  if (decisions.length === 0) return <p class="dim">Nothing has happened yet.</p>;
  return (
    <ul class="log">
      {withOutcomes(decisions).map((decision) => (
        <li>
          <Instant iso={decision.at} now={now} />{' '}
          {decision.compute_id === '' ? 'the fleet' : <ComputeLink id={decision.compute_id} />}{' '}
          <KindLink decision={decision} /> {changeWords(decision)}{' '}
          <span class="dim">
            <Message text={reasonOf(decision)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The kind, with a link to its line of the history. */
function KindLink({ decision }: { decision: DecisionDocument }) {
  const { id, compute_id: compute, kind } = decision;
  const show = id === null ? 'decisions' : 'audit';
  return (
    <a href={`${historyLink({ show, kind, compute })}${id === null ? '' : `#${id}`}`}>
      <Badge kind={kindOf(decision)} />
    </a>
  );
}

export function historyLink({ show, ...query }: Readonly<Record<string, string | undefined>>): string {
  return addressOf('/history', { show: show === 'audit' ? undefined : show, ...query });
}

/** The last reason other than `observe`, without the text of the change. */
function reasonOf({ reasons }: DecisionDocument): string {
  const { message = '' } = reasons.findLast(({ code }) => code !== 'observe') ?? {};
  return message.replace(/^(?:size|suspend_after) .+? → .+?: /, '');
}

/** The kind `held` (not a hold) means that a change waits, or was only observed. */
export function kindOf({ kind, reasons }: DecisionDocument): string {
  if (kind !== 'held') return kind;
  return reasons.some(({ code }) => code === 'observe') ? 'observed' : 'waits';
}

export function Why({ decision: { reasons, policy } }: { decision: DecisionDocument }) {
  return (
    <>
      {reasons.map(({ message, code }) => (
        <p>
          <Message text={message} /> <code class="dim">{code}</code>
        </p>
      ))}
      {policy !== null && (
        <p class="dim">{policy.startsWith('hold ') ? policy : <a href={addressOf('/', { policy })}>{policy}</a>}</p>
      )}
    </>
  );
}

export function changeWords({ from, to }: DecisionDocument): string {
  if (!to) return '–';
  const parts: string[] = [];
  if (sizeOf(to) !== undefined) parts.push(arrow(from && sizeOf(from), sizeOf(to)));
  if (to.suspend_timeout_seconds !== undefined)
    parts.push(`suspend timeout ${arrow(timeoutOf(from), timeoutWords(to.suspend_timeout_seconds))}`);
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
