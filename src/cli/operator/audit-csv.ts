import { csvLine } from '../../common/csv-text.ts';
import type { Operator } from '../../compose/operator-access.ts';

export type AuditLine = Extract<Awaited<ReturnType<Operator['audit']>>, { ok: true }>['value']['items'][number];

const COLUMNS = {
  at: ({ at }) => at,
  who: ({ who }) => who,
  verified: ({ verified }) => (verified ? 'yes' : 'no'),
  kind: ({ kind }) => kind,
  project_id: ({ project_id }) => project_id,
  compute_id: ({ compute_id }) => compute_id,
  owner: ({ owner }) => owner,
  policy: ({ policy }) => policy,
  from: ({ from }) => settingsText(from),
  to: ({ to }) => settingsText(to),
  reasons: ({ reasons }) => reasons.map(({ message }) => message).join('; '),
  set_hash: ({ set_hash }) => set_hash,
  revision: ({ revision }) => revision,
  request_id: ({ request_id }) => request_id,
  id: ({ id }) => id,
} satisfies Record<string, (line: AuditLine) => string | null>;

export const CSV_HEAD = csvLine(Object.keys(COLUMNS));

/** One entry of the audit as CSV, in the order of {@link CSV_HEAD}. */
export function auditCsvLine(line: AuditLine): string {
  return csvLine(Object.values(COLUMNS).map((textOf) => textOf(line)));
}

function settingsText(settings: AuditLine['from']): string {
  return Object.entries(settings ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
