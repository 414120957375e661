import { mapInTurns } from '../../common/in-turns.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { ComputeDocument } from '../../ports/documents.ts';
import type { OperatorResult, Page, PageQuery } from '../../ports/operator.ts';
import { frozenBy, statusOf } from '../evaluate/compute-status.ts';
import { computeDocument, pageOf } from './documents.ts';
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
  const documents = await mapInTurns(items, (evaluatedCompute) =>
    computeDocument(evaluatedCompute, statusOf(daemon, evaluatedCompute, isFrozen)),
  );
  return { ok: true, value: { items: documents, next } };
}
