/** The findings of each project, as the leader keeps them in the store: every daemon and command shows the same. */
import type { DocumentStore } from '../../ports/store.ts';
import type { FindingDocument } from '../../ports/waste.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** By the id of the project. */
const FINDINGS = sharedDocuments<ProjectFindings>('findings', 1);

/** Of one project no more are kept: those that may save most. */
const MOST_KEPT = 100;

/** The findings of one project. */
export interface ProjectFindings {
  account: string;
  /** When it was analysed, milliseconds since the epoch. */
  atMs: number;
  findings: FindingDocument[];
}

export async function keepFindings(
  store: Pick<DocumentStore, 'putDocument'>,
  projectId: string,
  found: ProjectFindings,
): Promise<void> {
  await FINDINGS.put(store, projectId, { ...found, findings: found.findings.slice(0, MOST_KEPT) });
}

export async function forgetFindings(
  store: Pick<DocumentStore, 'deleteDocuments'>,
  projectIds: readonly string[],
): Promise<void> {
  await FINDINGS.delete(store, projectIds);
}

/** Everything that is kept, by project. What another version has written counts as not there: it is found again. */
export function readFindings(store: Pick<DocumentStore, 'documents'>): Promise<Map<string, ProjectFindings>> {
  return FINDINGS.all(store);
}
