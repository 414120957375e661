import type { DaemonDocument } from '../../ports/documents.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** Reports of a group's daemons about themselves, by the random name of the daemon. */
export const REPORTS = sharedDocuments<DaemonDocument>('daemons', 1);
