import type { DaemonDocument } from '../../ports/documents.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** What each daemon of a group tells of itself, by a random name of the daemon. */
export const REPORTS = sharedDocuments<DaemonDocument>('daemons', 1);
