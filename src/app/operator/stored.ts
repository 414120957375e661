/** What the store remembers, for commands beside a daemon that has it for itself. */
import { asksForConnections } from '../../domain/connections/connection-samples.ts';
import type { RecordsDocument, UsageDocument } from '../../ports/documents.ts';
import type { OperatorResult, Page, RecordsQuery, UsageQuery } from '../../ports/operator.ts';
import { readSamples } from '../connections/samples.ts';
import { boundedLimit, pageOf } from './documents.ts';
import { findCompute } from './find-compute.ts';
import type { OperatorParts } from './parts.ts';

/** What is remembered of each compute, a page of projects at a time, or of the project of one. */
export async function listRecords(
  parts: OperatorParts,
  { after, limit, compute }: RecordsQuery,
): Promise<OperatorResult<Page<RecordsDocument>>> {
  const { store, daemon } = parts;
  const found = compute === undefined ? undefined : await findCompute(parts, compute);
  if (found?.ok === false) return found;
  const projectIds = found ? [found.value.projectId] : await store.projectIds();
  const ahead = projectIds.toSorted().filter((projectId) => after === undefined || projectId > after);
  const shown = ahead.slice(0, boundedLimit(limit));
  const items: RecordsDocument[] = [];
  const isCounted = daemon !== undefined && asksForConnections(daemon.policies().set);
  for (const projectId of shown) {
    const records = await store.records(projectId);
    const samples = await readSamples(store, isCounted ? [...records.keys()] : []);
    items.push({
      project_id: projectId,
      records: Object.fromEntries(records),
      samples: Object.fromEntries(samples),
    });
  }
  return { ok: true, value: { items, next: (ahead.length > shown.length && shown.at(-1)) || null } };
}

/** The usage that is kept of an organization, a page of units at a time. */
export async function listUsage(
  { store }: OperatorParts,
  { account, ...query }: UsageQuery,
): Promise<OperatorResult<Page<UsageDocument>>> {
  const { items: units, next } = pageOf(await store.usageUnits(account), (unit) => unit, query);
  const bytes = await store.usage(account, units);
  const items = [...bytes].map(([unit, one]) => ({ unit, bytes: Buffer.from(one).toString('base64') }));
  return { ok: true, value: { items, next } };
}
