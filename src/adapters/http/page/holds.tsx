import type { HoldDocument } from '../../../ports/documents.ts';
import { ComputeLink, Instant, Table } from './parts.tsx';
import { holdWords } from './words.ts';

interface HoldsProps {
  holds: readonly HoldDocument[];
  now: string;
  /** What to say where there are none. */
  none: string;
}

/** Holds in force; each leads to a page that asks for the token and ends it. */
export function Holds({ holds, now, none }: HoldsProps) {
  if (holds.length === 0) return <p class="dim">{none}</p>;
  return (
    <Table
      caption="Holds in force"
      head={['Compute', 'What', 'Owner', 'Reason', 'Until', 'End it']}
      rows={holds.map((hold) => [
        <ComputeLink id={hold.compute_id} />,
        holdWords(hold),
        hold.owner,
        hold.reason,
        hold.expires_at === null ? 'released' : <Instant iso={hold.expires_at} now={now} />,
        <a href={`/holds/${hold.id}`}>
          Release<span class="unseen"> the hold on {hold.compute_id}</span>
        </a>,
      ])}
    />
  );
}
