import { asksForConnections } from '../../domain/connections/connection-samples.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { ComputeDocument, RecordsDocument } from '../../ports/documents.ts';
import type { OperatorResult, Page, PageQuery } from '../../ports/operator.ts';
import { readSamples } from '../connections/read-samples.ts';
import { frozenBy, statusOf } from '../evaluate/compute-status.ts';
import { computeDocument } from './documents.ts';
import { boundedLimit, pageOf } from './pages.ts';
import { fail, type OperatorParts } from './parts.ts';

/** Every compute as the daemon has last evaluated it. */
export async function listComputes(
  parts: OperatorParts,
  query: PageQuery,
): Promise<OperatorResult<Page<ComputeDocument>>> {
  const { daemon, store } = parts;
  if (!daemon) return fail('unavailable', 'only a daemon knows what computes have now: start ebb run, or see ebb plan');
  const nowMs = await parts.now();
  const isFrozen = frozenBy(await store.freezes(nowMs), nowMs);
  const byPlace = ({ compute }: EvaluatedCompute) => `${compute.projectId}/${compute.computeId}`;
  const { items, next } = pageOf([...daemon.fleet.evaluatedComputes()], byPlace, query);
  const documents = items.map((evaluatedCompute) =>
    computeDocument(evaluatedCompute, statusOf(daemon, evaluatedCompute, isFrozen)),
  );
  return { ok: true, value: { items: documents, next } };
}

/** What is remembered of each compute, a page of projects at a time. */
export async function listRecords(
  { store, daemon }: OperatorParts,
  { after, limit }: PageQuery,
): Promise<OperatorResult<Page<RecordsDocument>>> {
  const projectIds = await store.projectIds();
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
