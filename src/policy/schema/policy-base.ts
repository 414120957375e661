import { z } from 'zod';
import { parseSelector, SELECTOR_LIMITS, type SelectorKeys } from '../../domain/policy/selector.ts';
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { duration, expected, mapping, parseDurationMs, Share } from './scalars.ts';

const CONNECTIONS = 'a number of connections';

const Rule = mapping(
  {
    when: z
      .enum(['any', 'idle', 'quiet'])
      .describe('any: at any time; idle: while the compute sleeps; quiet: while it has few connections.'),
    deadline: duration({ minMs: MINUTE_MS, maxMs: 7 * DAY_MS, text: '1m to 7d' })
      .describe('How long a change may wait after it became due, for example at the start of its window.')
      .optional(),
    // biome-ignore lint/suspicious/noThenProperty: a key of the policy language; parsed policies are never awaited
    then: z
      .enum(['apply', 'skip'])
      .default('apply')
      .describe('At the deadline: apply the change, or skip it until the next boundary.'),
  },
  'a rule such as {when: idle, deadline: 2h}',
);

const AT_MOST = 'a share and a time of 1m to 1d, such as "30% in 10m"';

const AtMost = z
  .string(expected(AT_MOST))
  .meta({ title: 'a share, and a time of 1m to 1d', pattern: '^([1-9]\\d?|100)% in [0-9dhms]+$' })
  .transform((text, context) => {
    const [, percent, time = ''] = /^([1-9]\d?|100)% in (\S+)$/.exec(text) ?? [];
    const windowMs = parseDurationMs(time);
    if (percent !== undefined && windowMs !== undefined && windowMs >= MINUTE_MS && windowMs <= DAY_MS)
      return { share: Number(percent) / 100, windowMs };
    context.issues.push({ code: 'custom', message: `expected ${AT_MOST}`, input: text });
    return z.NEVER;
  });

export const Disruption = mapping(
  {
    raise: Rule.describe('Changes that raise the maximum, or only the minimum; any if absent.').optional(),
    lower: Rule.describe('All other size changes; idle with a deadline of 2h if absent.').optional(),
    quiet_below: z
      .int(expected(CONNECTIONS))
      .min(0, `expected ${CONNECTIONS}`)
      .describe('A compute with fewer connections than this is quiet; 3 if absent.')
      .optional(),
    cooldown: duration({ minMs: 0, maxMs: DAY_MS, text: '0s to 1d' })
      .describe('Minimum time between two changes that restart the same compute; 10m if absent.')
      .optional(),
    at_once: Share.describe(
      "Share of the policy's computes that may be restarted at the same time; always at least 5 computes. 10% if absent.",
    ).optional(),
    at_most: AtMost.describe(
      "Share of the policy's computes that may be restarted within a time, such as 30% in 10m; always at least 1 compute. No limit if absent.",
    ).optional(),
    newly_discovered: z
      .enum(['wait', 'act'])
      .describe(
        'wait: a newly discovered compute keeps its size while it is active, until the next boundary or for a day; act: it is changed like any other. wait if absent.',
      )
      .optional(),
  },
  'a mapping such as {lower: {when: idle}, cooldown: 10m}',
);
export type Disruption = z.infer<typeof Disruption>;

const MANUAL = 'respect, revert, or {respect_for: 2h}';

export const ManualChanges = z.union(
  [
    z.literal(['respect', 'revert']),
    mapping(
      {
        respect_for: duration({ minMs: MINUTE_MS, maxMs: 30 * DAY_MS, text: '1m to 30d' }).describe(
          'How long a manual change is respected.',
        ),
      },
      MANUAL,
    ),
  ],
  expected(MANUAL),
);
export type ManualChanges = z.infer<typeof ManualChanges>;

const { globs: GLOBS, characters: CHARACTERS } = SELECTOR_LIMITS.file;

const Glob = z
  .string(expected('a glob such as "web-*"'))
  .max(CHARACTERS, `a glob has at most ${CHARACTERS} characters`)
  .regex(/^!?[^!\s]/, 'expected a glob such as "web-*", or "!web-legacy" to exclude');

function globs(names: string) {
  return z
    .array(Glob, expected('a list of globs such as ["web-*", "!web-legacy"]'))
    .min(1, 'expected at least one glob')
    .max(GLOBS, `a list has at most ${GLOBS} globs`)
    .refine((list) => list.length === 0 || list.some((glob) => !glob.startsWith('!')), {
      error: 'only excludes, so it selects nothing; add "*" to mean all others',
    })
    .describe(`Globs against ${names}; "!" excludes.`)
    .optional();
}

const WITHOUT_KEYS = 'has no key that selects computes; write {projects: ["*"]} to select everything';

/** All given keys must match. */
export const Selector = mapping(
  {
    accounts: globs('names of accounts'),
    projects: globs('ids or names of projects'),
    branches: globs('ids or names of branches'),
    computes: globs('ids of computes'),
    regions: globs('ids of regions'),
    types: z
      .array(z.enum(['read_write', 'read_only']), expected('a list of read_write, read_only'))
      .min(1, 'expected at least one type')
      .describe('Types of computes.')
      .optional(),
    min_age: duration({ minMs: 0, maxMs: 365 * DAY_MS, text: '0s to 365d' })
      .describe('Computes younger than this are not selected.')
      .prefault('30m'),
    branch_roles: z
      .array(z.enum(['default', 'protected', 'child']), expected('a list of default, protected, child'))
      .min(1, 'expected at least one role')
      .describe('Roles of the branch; any of them matches.')
      .optional(),
    share: Share.describe('A stable share of the computes, such as 10%, by hash of their ids.').optional(),
  },
  'a selector such as {projects: ["web-*"]}',
).transform(({ min_age: minAgeMs, branch_roles: branchRoles, share, ...lists }, context) => {
  const globLists = Object.fromEntries(Object.entries(lists).filter(([, list]) => list !== undefined));
  const keys: SelectorKeys = {
    ...globLists,
    ...(branchRoles && { branchRoles }),
    ...(share !== undefined && { share }),
    minAgeMs,
  };
  const hasNoKeys = Object.keys(globLists).length === 0 && !branchRoles;
  const outcome = hasNoKeys ? { ok: false as const, problem: WITHOUT_KEYS } : parseSelector(keys, 'file');
  if (outcome.ok) return outcome.value;
  context.addIssue({ code: 'custom', message: outcome.problem });
  return z.NEVER;
});

const NAME = 'a name of letters, digits, ".", "_" and "-", at most 64 characters';

const NAME_SOURCE = '[A-Za-z0-9][\\w.-]{0,63}';
const NAME_PATTERN = new RegExp(`^${NAME_SOURCE}$`);
const SELECT = 'a selector such as {projects: ["web-*"]}, or the name of a group';

export const PolicyName = z
  .string(expected(NAME))
  .regex(NAME_PATTERN, `expected ${NAME}`)
  .describe('Unique over all files; a label of metrics, logs and history.');

const FULL_NAME = `${NAME}, or of a team such as team-web/hours`;

/** The name of a policy; one of another team has the form TEAM/NAME. */
export const FullName = z
  .string(expected(FULL_NAME))
  .regex(new RegExp(`^(?:${NAME_SOURCE}/)?${NAME_SOURCE}$`), `expected ${FULL_NAME}`);

/** Names of receivers, which the settings define. */
export const ReceiverList = z
  .array(
    z.string(expected('the name of a receiver')).min(1, 'expected the name of a receiver'),
    expected('a list of receivers'),
  )
  .min(1, 'expected at least one receiver')
  .max(20, 'a list has at most 20 receivers');

/** The keys that every kind of policy has. */
export const policyBase = {
  name: PolicyName,
  select: z
    .union([z.string().regex(NAME_PATTERN, `expected ${SELECT}`), Selector], expected(SELECT))
    .describe('Which computes the policy selects: a selector, or the name of one under groups.'),
  priority: z
    .int(expected('a whole number from -1000000 to 1000000'))
    .min(-1_000_000)
    .max(1_000_000)
    .default(0)
    .describe('Among open windows of several policies the higher priority decides.'),
  mode: z
    .enum(['enforce', 'observe'])
    .default('enforce')
    .describe('observe: evaluated, shown and counted, but nothing is written.'),
  enabled: z.boolean(expected('true or false')).default(true).describe('false: checked, then ignored.'),
  disruption: Disruption.describe('When disruptive changes are allowed.').optional(),
  manual_changes: ManualChanges.describe('What happens to manual changes.').optional(),
  notify: ReceiverList.describe(
    'Receivers of notifications about changes by this policy, besides the receivers of its owner.',
  ).optional(),
  notify_before: duration({ minMs: MINUTE_MS, maxMs: DAY_MS, text: '1m to 1d' })
    .describe('Receivers are notified this long before a change that disconnects clients.')
    .optional(),
};

/** The keys that the permissions of a team limit, each undefined if it is absent or not valid. Of an invalid selector the projects count. */
export const LimitedKeys = z.object({
  priority: policyBase.priority.unwrap().optional().catch(undefined),
  select: z
    .union([policyBase.select, z.preprocess(projectsOnly, Selector)])
    .optional()
    .catch(undefined),
});

function projectsOnly(select: unknown): unknown {
  return typeof select === 'object' && select !== null ? { projects: Reflect.get(select, 'projects') } : select;
}
