import type { FleetRowDocument, SegmentDocument } from '../../../ports/status-page.ts';
import { Instant, Message } from './parts.tsx';
import { sizeWords, suspendWords } from './words.ts';

/** The next change of a compute and its reason: what is due or waits now, then what is foreseen. */
export function NextChange({ row, now }: { row: FleetRowDocument; now: string }) {
  return (
    <>
      <Due row={row} now={now} />
      <Foreseen row={row} now={now} />
    </>
  );
}

function Due({ row: { verdict, reasons, until }, now }: { row: FleetRowDocument; now: string }) {
  // In observe mode the column of wanted values shows what is held back; one line above the list says that nothing is written.
  if (verdict === 'none' || reasons.at(-1)?.code === 'observe') return null;
  if (verdict === 'act')
    return (
      <p class="due">
        due now: <Message text={reasons[0]?.message ?? ''} />
      </p>
    );
  return (
    <p class="due">
      {/* The gate stands after what it holds back. */}
      waits: <Message text={reasons.at(-1)?.message ?? ''} />
      {until !== null && (
        <>
          {' '}
          (until <Instant iso={until} now={now} />)
        </>
      )}
    </p>
  );
}

function Foreseen({ row, now }: { row: FleetRowDocument; now: string }) {
  const { week, next_boundary: boundary, reasons, verdict } = row;
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
      <p class="dim">{verdict === 'none' ? <Message text={reasons[0]?.message ?? ''} /> : 'then nothing for a week'}</p>
    );
  }
  if (boundary === null) return null;
  return (
    <p>
      looked at <Instant iso={boundary} now={now} />
    </p>
  );
}

/** Only what changes. */
function changeWords(before: SegmentDocument, after: SegmentDocument): string {
  const parts = [
    ...(sizeWords(before) === sizeWords(after) ? [] : [sizeWords(after)]),
    ...(before.suspend_timeout_seconds === after.suspend_timeout_seconds
      ? []
      : [suspendWords(after.suspend_timeout_seconds)]),
  ];
  return parts.join(', ');
}
