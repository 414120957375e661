/** Every route of `/api/v1`, with what it takes and gives. A test holds that these are the routes that there are. */
import { z } from 'zod';
import {
  ApproveBody,
  DecisionsQuery,
  EndQuery,
  FleetQuery,
  FreezeBody,
  HoldBody,
  PageQuery,
  ReleaseBody,
  RestoreBody,
  UsageQuery,
} from './bodies.ts';
import { age, Compute, Decision, Freeze, Hold, Plan, Released, Restored, Status, text } from './documents.ts';
import { ComputeDetail, Fleet } from './page-documents.ts';

export interface ApiRoute {
  method: 'get' | 'post' | 'delete';
  /** After `/api/v1`; `{id}` stands for an id. */
  path: string;
  /** Its name, for those who make clients of the document. */
  name: string;
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  answer: z.ZodType;
  /** 200 unless something else is said. */
  status?: 200 | 201;
}

const next = text.nullable().meta({ description: 'Where the next page begins: `after`; null on the last.' });
const Unfrozen = z.object({ freezes: z.array(text) });
const Approved = z.object({ hash: text });
const Records = z.object({
  records: z.array(
    z.object({
      project_id: text,
      records: z.record(text, z.looseObject({})),
      samples: z.record(text, z.array(z.looseObject({}))).optional(),
    }),
  ),
  next,
});

const Usage = z.object({ usage: z.array(z.object({ unit: text, bytes: text })), next });

export const API_ROUTES: readonly ApiRoute[] = [
  { method: 'get', path: '/status', name: 'status', summary: 'Status of the daemon and its fleet', answer: Status },
  {
    ...{ method: 'get', path: '/computes', name: 'computes', summary: 'All computes, a page at a time' },
    query: PageQuery,
    answer: z.object({ computes: z.array(Compute), next, ...age }),
  },
  {
    ...{ method: 'get', path: '/computes/{id}', name: 'compute', summary: 'One compute: why, and the week ahead' },
    answer: ComputeDetail,
  },
  {
    ...{
      method: 'get',
      path: '/fleet',
      name: 'fleet',
      summary: 'Computes, what needs attention first, with their week',
    },
    query: FleetQuery,
    answer: Fleet,
  },
  {
    ...{ method: 'get', path: '/decisions', name: 'decisions', summary: 'The history, newest first' },
    query: DecisionsQuery,
    answer: z.object({ decisions: z.array(Decision), ...age }),
  },
  { method: 'get', path: '/plan', name: 'plan', summary: 'As ebb plan --json', answer: Plan },
  {
    ...{ method: 'get', path: '/records', name: 'records', summary: 'Stored records; the format may change' },
    query: PageQuery,
    answer: Records,
  },
  {
    ...{ method: 'get', path: '/usage', name: 'usage', summary: 'Stored usage; the format may change' },
    query: UsageQuery,
    answer: Usage,
  },
  {
    ...{ method: 'get', path: '/holds', name: 'holds', summary: 'Active holds' },
    query: PageQuery,
    answer: z.object({ holds: z.array(Hold), next, ...age }),
  },
  {
    ...{ method: 'post', path: '/holds', name: 'hold', summary: 'Hold a compute for a while' },
    ...{ body: HoldBody, answer: Hold, status: 201 },
  },
  {
    ...{ method: 'delete', path: '/holds/{id}', name: 'endHold', summary: 'End a hold' },
    ...{ query: EndQuery, answer: Released },
  },
  {
    ...{ method: 'get', path: '/freezes', name: 'freezes', summary: 'Active freezes' },
    query: PageQuery,
    answer: z.object({ freezes: z.array(Freeze), next, ...age }),
  },
  {
    ...{ method: 'post', path: '/freezes', name: 'freeze', summary: 'Stop all writes to what is selected' },
    ...{ body: FreezeBody, answer: Freeze, status: 201 },
  },
  {
    ...{ method: 'delete', path: '/freezes', name: 'unfreezeAll', summary: 'End all freezes' },
    ...{ query: EndQuery, answer: Unfrozen },
  },
  {
    ...{ method: 'delete', path: '/freezes/{id}', name: 'unfreeze', summary: 'End a freeze' },
    ...{ query: EndQuery, answer: Unfrozen },
  },
  {
    ...{
      method: 'post',
      path: '/release',
      name: 'release',
      summary: 'End a hold, or all holds, stopped fights and respected manual changes of a compute',
    },
    ...{ body: ReleaseBody, answer: Released },
  },
  {
    ...{ method: 'post', path: '/approve', name: 'approve', summary: 'Make a staged policy set current' },
    ...{ body: ApproveBody, answer: Approved },
  },
  {
    ...{ method: 'post', path: '/restore', name: 'restore', summary: 'Set computes back to their baseline' },
    ...{ body: RestoreBody, answer: Restored },
  },
];
