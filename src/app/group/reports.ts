import type { DaemonDocument } from '../../ports/documents.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** Reports of the daemons of a group about themselves, by a random name of the daemon. */
export const REPORTS = sharedDocuments<DaemonDocument>('daemons', 1);
