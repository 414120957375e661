/** Bodies and queries of the HTTP API. Unknown keys are refused, so that no misspelt key is ignored. */
import { z } from 'zod';
import { parseJson } from '../../../common/result.ts';
import {
  type Selector as ParsedSelector,
  parseSelector,
  SELECTOR_LIMITS,
  type SelectorKeys,
  wildcardProblem,
} from '../../../domain/policy/selector.ts';
import { FINDING_KINDS } from '../../../domain/recommend/finding.ts';
import { HISTORY_KINDS } from '../../../domain/records/history.ts';
import { LONGEST_OVERRIDE_SECONDS, MAX_CHARACTERS, MAX_PER_PAGE } from '../../../ports/operator.ts';
import { FLEET_GROUPS, FLEET_ORDERS } from '../../../ports/status-page.ts';

const MAX_COMPUTES = 1000;

const text = (most: number) => z.string().min(1, 'must not be empty').max(most, `must be at most ${most} characters`);
/** `COMPUTE`, or `PROJECT/COMPUTE`: two ids, and some room. */
const computePlace = text(210);
const owner = text(MAX_CHARACTERS.owner)
  .optional()
  .describe('The person who acts; the name of the token takes precedence.');
const Common = {
  owner,
  reason: text(MAX_CHARACTERS.reason),
  for_seconds: z.number().min(1).max(LONGEST_OVERRIDE_SECONDS),
};

export const HoldBody = z.strictObject({
  ...Common,
  compute: computePlace,
  size: z.strictObject({ min_cu: z.number(), max_cu: z.number() }).optional(),
  suspend_timeout_seconds: z.number().int().optional(),
  freeze: z.boolean().optional(),
});

const globs = z
  .array(
    z
      .string()
      .regex(/^!?[^!\s]/, 'expected a glob such as "web-*"')
      .meta({ maxLength: SELECTOR_LIMITS.request.characters }),
  )
  .min(1)
  .meta({ maxItems: SELECTOR_LIMITS.request.globs })
  .refine((list) => list.some((glob) => !glob.startsWith('!')), { error: 'only excludes, so it selects nothing' })
  .exactOptional();

const Selector = z
  .strictObject({
    accounts: globs,
    projects: globs,
    branches: globs,
    computes: globs,
    regions: globs,
    types: z
      .array(z.enum(['read_write', 'read_only']))
      .min(1)
      .max(2)
      .exactOptional(),
    branchRoles: z
      .array(z.enum(['default', 'protected', 'child']))
      .min(1)
      .max(3)
      .exactOptional(),
    share: z.number().gt(0).max(1).exactOptional(),
    minAgeMs: z.number().min(0).default(0),
  })
  .refine(({ minAgeMs: _age, share: _share, ...keys }) => Object.keys(keys).length > 0, {
    error: 'has no key that selects computes; for everything send "all"',
  });

/** Not part of the schema, so that the answer names the limit that was exceeded. */
function withinLimits(keys: SelectorKeys, context: z.RefinementCtx): ParsedSelector<'request'> {
  const problem = wildcardProblem(keys);
  const outcome = problem === undefined ? parseSelector(keys, 'request') : { ok: false as const, problem };
  if (outcome.ok) return outcome.value;
  context.addIssue({ code: 'custom', message: outcome.problem });
  return z.NEVER;
}

export const FreezeBody = z.strictObject({
  ...Common,
  select: z
    .union([z.literal('all'), Selector])
    .transform((select, context) => (select === 'all' ? select : withinLimits(select, context))),
  allow_raise: z.boolean().default(false),
});

const confirm = z.number().int().min(0);
const confirmable = {
  preview: z.boolean().optional().describe('Change nothing: only say what would be changed, and of how many computes.'),
  confirm: confirm
    .optional()
    .describe('How many computes it may change (`count` of the preview); refused if it is another number.'),
};

export const ReleaseBody = z.strictObject({
  target: computePlace,
  owner,
  guard: z.boolean().optional(),
  ...confirmable,
});

export const ApproveBody = z.strictObject({ hash: text(64), owner, ...confirmable });

const Baseline = z.strictObject({
  compute_id: text(100),
  min_cu: z.number().positive(),
  max_cu: z.number().positive(),
  suspend_timeout_seconds: z.number().int().min(-1),
});

export const RestoreBody = z.strictObject({
  computes: z.union([z.literal('all'), z.array(computePlace).min(1).max(MAX_COMPUTES)]),
  owner,
  now: z.boolean().default(false),
  baselines: z.array(Baseline).max(MAX_COMPUTES).optional().describe('Replace what is stored of these computes.'),
  ...confirmable,
  confirm: z
    .union([confirm, z.literal('any')])
    .optional()
    .describe('How many computes go back (`count` of the preview), or `any` number; needed for more than one.'),
  cancel: z.boolean().optional().describe('Withdraw the requests that still wait, instead.'),
});

/** A DELETE has no body, so the owner is in the query. */
export const EndQuery = z.strictObject({ owner: text(MAX_CHARACTERS.owner).optional() });

/** The values of a query are texts. */
export const UnfreezeQuery = EndQuery.extend({
  preview: z.stringbool({ truthy: ['true'], falsy: ['false'] }).optional(),
  confirm: z.coerce.number().int().min(0).optional(),
});

const limit = (fallback: number) => z.coerce.number().int().min(1).max(MAX_PER_PAGE).default(fallback);

export const PageQuery = z.strictObject({ after: text(300).optional(), limit: limit(MAX_PER_PAGE) });
export const RecordsQuery = PageQuery.extend({ compute: computePlace.optional() });
/** `account`: `ACCOUNT/ORGANIZATION`, or the key of its stored trial days. */
export const UsageQuery = PageQuery.extend({ account: text(300) });
const wholeName = z.string().max(MAX_CHARACTERS.query).optional();
export const FleetQuery = z.strictObject({
  q: z.string().max(MAX_CHARACTERS.query).default(''),
  owner: wholeName,
  project: wholeName,
  policy: wholeName,
  status: wholeName,
  reason: wholeName,
  sort: z.enum(FLEET_ORDERS).optional(),
  group: z.enum(FLEET_GROUPS).optional(),
  page: z.coerce.number().int().min(1).default(1),
});
export const CostQuery = z.strictObject({ owner: wholeName, page: z.coerce.number().int().min(1).default(1) });
export const WasteQuery = z.strictObject({
  owner: wholeName,
  finding: z.enum(FINDING_KINDS).optional(),
  page: z.coerce.number().int().min(1).default(1),
});
/** `select`: the JSON of a selector of `POST /freezes`. */
export const StatusQuery = z.strictObject({
  owner: wholeName,
  select: z
    .string()
    .max(10_000)
    .transform((text) => parseJson(text))
    .pipe(Selector)
    .transform(withinLimits)
    .optional(),
});
export const DecisionsQuery = z.strictObject({ compute: computePlace.optional(), limit: limit(100) });

const instantMs = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
export const AuditQuery = PageQuery.extend({
  compute: computePlace.optional(),
  owner: wholeName,
  kind: z.enum(HISTORY_KINDS).optional(),
  policy: wholeName,
  who: wholeName,
  request: wholeName,
  since: instantMs.default(0),
  until: instantMs.default(Number.MAX_SAFE_INTEGER),
});

const day = z.iso.date().optional();
/** The query of the history page, with days (UTC) instead of instants. */
export const HistoryQuery = z.strictObject({
  show: z.enum(['audit', 'decisions']).default('audit'),
  compute: computePlace.optional(),
  owner: wholeName,
  policy: wholeName,
  who: wholeName,
  request: wholeName,
  kind: z.enum(HISTORY_KINDS).optional(),
  since: day,
  until: day,
  after: text(300).optional(),
});

/** The first problem in one line, with its place. */
export function problemOf({ issues }: z.ZodError): string {
  const [issue] = issues;
  const place = issue?.path.join('.');
  return `${place ? `${place}: ` : ''}${issue?.message ?? 'not understood'}`;
}
