import { z } from 'zod';
import { CostDetailDocument } from '../../../ports/cost-documents.ts';
import { instant, text } from '../../../ports/document-fields.ts';
import {
  ApproveDocument,
  ComputeDocument,
  DecisionDocument,
  FreezeDocument,
  HoldDocument,
  ReleaseDocument,
  RestoreDocument,
  StatusDocument,
  staleness,
  UnfreezeDocument,
} from '../../../ports/documents.ts';
import {
  NotificationIdsDocument,
  NotificationsDocument,
  RetryOrDropNotifications,
} from '../../../ports/notifications.ts';
import type { Caller, DaemonOperator, OperatorResult, Page } from '../../../ports/operator.ts';
import { PlanDocument } from '../../../ports/plan-document.ts';
import type { Role } from '../../../ports/roles.ts';
import { ComputeDetailDocument, FleetDocument } from '../../../ports/status-page.ts';
import { WasteDocument } from '../../../ports/waste.ts';
import type { Targets, TargetsOf } from '../tokens.ts';
import {
  ApproveBody,
  AuditQuery,
  DecisionsQuery,
  EndQuery,
  FleetQuery,
  FreezeBody,
  HoldBody,
  PageQuery,
  RecordsQuery,
  ReleaseBody,
  RestoreBody,
  StatusQuery,
  UnfreezeQuery,
  UsageQuery,
  WasteQuery,
} from './bodies.ts';

/** The routes of `/api/v1`: for the server, for clients, and for the OpenAPI document. `{id}` stands for an id. */
export const API_PATHS = {
  status: ['get', '/status'],
  computes: ['get', '/computes'],
  compute: ['get', '/computes/{id}'],
  fleet: ['get', '/fleet'],
  decisions: ['get', '/decisions'],
  audit: ['get', '/audit'],
  plan: ['get', '/plan'],
  records: ['get', '/records'],
  readings: ['get', '/readings'],
  usage: ['get', '/usage'],
  costs: ['get', '/costs'],
  waste: ['get', '/waste'],
  notifications: ['get', '/notifications'],
  retryOrDropNotifications: ['post', '/notifications'],
  holds: ['get', '/holds'],
  hold: ['post', '/holds'],
  endHold: ['delete', '/holds/{id}'],
  freezes: ['get', '/freezes'],
  freeze: ['post', '/freezes'],
  unfreezeAll: ['delete', '/freezes'],
  unfreeze: ['delete', '/freezes/{id}'],
  release: ['post', '/release'],
  approve: ['post', '/approve'],
  restore: ['post', '/restore'],
} as const satisfies Record<string, readonly [method: 'get' | 'post' | 'delete', path: `/${string}`]>;

export type RouteName = keyof typeof API_PATHS;

/** A validated request. */
interface Asked<Query = unknown, Body = unknown> {
  operator: DaemonOperator;
  query: Query;
  body: Body;
  /** Empty if the path has none. */
  id: string;
  /** The person behind a command: the name of the token, else the given one. */
  owner: string;
  /** For the audit. */
  caller: Caller;
}

interface Route {
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  answer: z.ZodType;
  /** 200 by default. */
  status?: 200 | 201;
  /** True if the answer never carries its age; others do while the store is unavailable. */
  omitsAge?: true;
  /** The role that a token needs, and the targets of the request; absent for reads. `isRead`: true for a body that changes nothing. */
  needs?: { role: Exclude<Role, 'read'>; targets: TargetsOf; isRead?: (body: unknown) => boolean };
  run(asked: Asked): Promise<OperatorResult<object>>;
}

export interface ApiRoute extends Route {
  /** The `operationId`. */
  name: RouteName;
  method: 'get' | 'post' | 'delete';
  /** After `/api/v1`. */
  path: string;
}

/** A route whose handler gets the output of its schemas, and returns a value of its answer's schema. */
function route<Answer extends object, Query extends z.ZodObject = z.ZodObject, Body extends z.ZodType = z.ZodType>(
  parts: Omit<Route, 'query' | 'body' | 'answer' | 'run'> & {
    query?: Query;
    body?: Body;
    answer: z.ZodType<Answer>;
    run(asked: Asked<z.output<Query>, z.output<Body>>): Promise<OperatorResult<Answer>>;
  },
): Route {
  return parts as unknown as Route;
}

/** The text, or the list of texts, at a key of a body that is not validated yet. Anything else counts as `all`, which needs most rights. */
const inBody =
  (key: string): TargetsOf =>
  ({ body }): Targets => {
    const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, key) : undefined;
    const texts = [value].flat().filter((item) => typeof item === 'string');
    return value === 'all' || texts.length < [value].flat().length ? 'all' : texts;
  };
/** True if a body, which is not validated yet, asks for a preview: it then changes nothing. */
const isPreview = (body: unknown) => typeof body === 'object' && body !== null && Reflect.get(body, 'preview') === true;
const operates = (targets: TargetsOf) => ({ needs: { role: 'operate', targets } }) as const;
const freezes = (targets: TargetsOf) => ({ needs: { role: 'freeze', targets } }) as const;

const HOLD_ID = /^h-[0-9a-f]+$/;

/** A page as a document, with the items at `key`. */
async function paged<Key extends string, T>(
  key: Key,
  page: Promise<OperatorResult<Page<T>>>,
): Promise<OperatorResult<Record<Key, T[]> & { next: string | null }>> {
  const result = await page;
  if (!result.ok) return result;
  const items = { [key]: result.value.items } as Record<Key, T[]>;
  return { ok: true, value: { ...items, next: result.value.next } };
}

async function done<T>(value: Promise<T>): Promise<OperatorResult<T>> {
  return { ok: true, value: await value };
}

const next = text.nullable().meta({ description: 'Where the next page begins: `after`; null on the last.' });
/** Not described, since its format may change. */
const stored: z.ZodType<object> = z.looseObject({});
const storedList: z.ZodType<readonly object[]> = z.array(stored);
const Records = z.object({
  records: z.array(
    z.object({
      project_id: text,
      records: z.record(text, stored),
      samples: z.record(text, storedList).optional(),
    }),
  ),
  next,
});

const Readings = z.object({
  readings: z.array(z.object({ collection: text, documents: z.record(text, text), at: instant })),
  next,
});

const Usage = z.object({ usage: z.array(z.object({ unit: text, bytes: text })), next });

const ROUTES: Readonly<Record<RouteName, Route>> = {
  status: route({
    summary: 'Status of the daemon and its fleet, or of some computes',
    query: StatusQuery,
    answer: StatusDocument,
    run: ({ operator, query }) => operator.status(query),
  }),
  computes: route({
    summary: 'All computes, a page at a time',
    query: PageQuery,
    answer: z.object({ computes: z.array(ComputeDocument), next, ...staleness }),
    run: ({ operator, query }) => paged('computes', operator.computes(query)),
  }),
  compute: route({
    summary: 'One compute: why, and the week ahead',
    answer: ComputeDetailDocument,
    run: ({ operator, id }) => operator.compute(id),
  }),
  fleet: route({
    summary: 'Computes, what needs attention first, with their week',
    query: FleetQuery,
    answer: FleetDocument,
    run: ({ operator, query }) => done(operator.fleet(query)),
  }),
  decisions: route({
    summary: 'The history, newest first',
    query: DecisionsQuery,
    answer: z.object({ decisions: z.array(DecisionDocument), ...staleness }),
    async run({ operator, query }) {
      const decisions = await operator.decisions(query);
      return decisions.ok ? { ok: true, value: { decisions: decisions.value } } : decisions;
    },
  }),
  audit: route({
    summary: 'What was sent to the control API, and what people commanded, newest first',
    query: AuditQuery,
    answer: z.object({ audit: z.array(DecisionDocument), next }),
    run: ({ operator, query: { since: sinceMs, until: untilMs, ...query } }) =>
      paged('audit', operator.audit({ ...query, sinceMs, untilMs })),
  }),
  plan: route({
    summary: 'As ebb plan --json',
    answer: PlanDocument,
    omitsAge: true,
    run: ({ operator }) => done(operator.plan()),
  }),
  records: route({
    summary: 'Stored records; the format may change',
    query: RecordsQuery,
    answer: Records,
    run: ({ operator, query }) => paged('records', operator.records(query)),
  }),
  readings: route({
    summary: 'Stored readings of the fleet; the format may change',
    query: PageQuery,
    answer: Readings,
    run: ({ operator, query }) => paged('readings', operator.readings(query)),
  }),
  usage: route({
    summary: 'Stored usage; the format may change',
    query: UsageQuery,
    answer: Usage,
    run: ({ operator, query }) => paged('usage', operator.usage(query)),
  }),
  costs: route({
    summary: 'Measured compute by day and by project; the month is in the status',
    answer: z.object({ costs: CostDetailDocument.nullable(), ...staleness }),
    run: ({ operator }) => operator.costs(),
  }),
  waste: route({
    summary: 'What would cost less, as ebb recommend',
    query: WasteQuery,
    answer: WasteDocument,
    run: ({ operator, query }) => operator.waste(query),
  }),
  notifications: route({
    summary: 'Notifications that wait, or could not be sent',
    answer: NotificationsDocument,
    run: ({ operator }) => operator.notifications(),
  }),
  retryOrDropNotifications: route({
    summary: 'Send dead notifications again, or drop them',
    body: RetryOrDropNotifications,
    answer: NotificationIdsDocument,
    ...operates(() => 'all'),
    run: ({ operator, caller, body }) => operator.retryOrDropNotifications(body, caller),
  }),
  holds: route({
    summary: 'Active holds',
    query: PageQuery,
    answer: z.object({ holds: z.array(HoldDocument), next, ...staleness }),
    run: ({ operator, query }) => paged('holds', operator.holds(query)),
  }),
  hold: route({
    summary: 'Hold a compute for a while',
    body: HoldBody,
    answer: HoldDocument,
    status: 201,
    ...operates(inBody('compute')),
    run({ operator, owner, caller, body: { for_seconds, size, suspend_timeout_seconds, ...body } }) {
      const fields = {
        ...(size && { size: { minCu: size.min_cu, maxCu: size.max_cu } }),
        ...(suspend_timeout_seconds !== undefined && { suspendTimeoutSeconds: suspend_timeout_seconds }),
      };
      return operator.hold({ ...body, owner, ...fields, forSeconds: for_seconds }, caller);
    },
  }),
  endHold: route({
    summary: 'End a hold',
    query: EndQuery,
    answer: ReleaseDocument,
    ...operates(({ id = '' }) => [id]),
    async run({ operator, owner, caller, id: target }) {
      if (HOLD_ID.test(target)) return operator.release({ target, owner }, caller);
      // Only POST /release takes the id of a compute, and releases all of its holds.
      return { ok: false, error: { code: 'not_found', message: 'no hold has this id; see GET /api/v1/holds' } };
    },
  }),
  freezes: route({
    summary: 'Active freezes',
    query: PageQuery,
    answer: z.object({ freezes: z.array(FreezeDocument), next, ...staleness }),
    run: ({ operator, query }) => paged('freezes', operator.freezes(query)),
  }),
  freeze: route({
    summary: 'Stop all writes to what is selected',
    body: FreezeBody,
    answer: FreezeDocument,
    status: 201,
    ...freezes(() => 'own'),
    run: ({ operator, owner, caller, body: { for_seconds, allow_raise, ...body } }) =>
      operator.freeze({ ...body, owner, forSeconds: for_seconds, allowRaise: allow_raise }, caller),
  }),
  unfreezeAll: route({
    summary: 'End all freezes',
    query: UnfreezeQuery,
    answer: UnfreezeDocument,
    ...freezes(() => 'own'),
    run: ({ operator, owner, caller, query: { preview, confirm } }) =>
      operator.unfreeze({ id: 'all', owner, preview, confirm }, caller),
  }),
  unfreeze: route({
    summary: 'End a freeze',
    query: UnfreezeQuery,
    answer: UnfreezeDocument,
    ...freezes(({ id = '' }) => [id]),
    run: ({ operator, owner, caller, id, query: { preview, confirm } }) =>
      operator.unfreeze({ id, owner, preview, confirm }, caller),
  }),
  release: route({
    summary: 'End a hold, or all holds, stopped fights and respected manual changes of a compute',
    body: ReleaseBody,
    answer: ReleaseDocument,
    ...operates(inBody('target')),
    run: ({ operator, owner, caller, body }) => operator.release({ ...body, owner }, caller),
  }),
  approve: route({
    summary: 'Make a staged policy set current',
    body: ApproveBody,
    answer: ApproveDocument,
    needs: { role: 'approve', targets: inBody('hash') },
    run: ({ operator, owner, caller, body }) => operator.approve({ ...body, owner }, caller),
  }),
  restore: route({
    summary: 'Set computes back to their baseline',
    body: RestoreBody,
    answer: RestoreDocument,
    // A preview of all computes needs no role: `ebb restore --owner` finds the computes of a team in it.
    needs: { role: 'operate', targets: inBody('computes'), isRead: isPreview },
    run: ({ operator, owner, caller, body }) => operator.restore({ ...body, owner }, caller),
  }),
};

export const API_ROUTES: readonly ApiRoute[] = (Object.keys(API_PATHS) as RouteName[]).map((name) => {
  const [method, path] = API_PATHS[name];
  return { name, method, path, ...ROUTES[name] };
});
