import { z } from 'zod';
import { didYouMean } from '../../common/names.ts';
import { DAY_MS, SECOND_MS } from '../../domain/time/units.ts';
import { duration, expected, mapping } from './scalars.ts';

const every = duration({ minMs: 10 * SECOND_MS, maxMs: DAY_MS, text: '10s to 1d' })
  .describe('Polling interval; 1m if absent.')
  .optional();

const PrometheusSource = mapping({
  from: z.literal('prometheus').describe('Queries a Prometheus; wakes no compute.'),
  url: z
    .url({ protocol: /^https?$/, error: 'expected a URL such as "http://prometheus:9090"' })
    .refine((url) => !/^https?:\/\/[^/?#]*@/i.test(url), 'expected a URL without user and password; use token_env')
    .describe('Its address; the settings must allow the origin.'),
  query: z
    .string(expected('a query'))
    .min(1)
    .max(10_000)
    .describe('Counts connections, for headroom; may use $compute, $project, $branch.')
    .optional(),
  token_env: z
    .string(expected('the name of a variable'))
    .regex(
      /^EBB_PROMETHEUS_TOKEN(_[A-Z0-9_]+)?$/,
      'expected the name of a variable: EBB_PROMETHEUS_TOKEN, or EBB_PROMETHEUS_TOKEN_ and more capitals',
    )
    .describe('Variable that holds the bearer token.')
    .optional(),
  token_file: z.string(expected('a path')).min(1).describe('File that holds the bearer token.').optional(),
  every,
}).refine(({ token_env, token_file }) => token_env === undefined || token_file === undefined, {
  error: 'expected token_env or token_file, not both',
});

const PostgresSource = mapping({
  from: z.literal('postgres').describe('Queries the computes themselves while they are awake.'),
  dsn_env: z
    .string(expected('the name of a variable'))
    .regex(/^EBB_DSN_[A-Z0-9_]+$/, 'expected the name of a variable that begins with EBB_DSN_')
    .describe('Variable that holds the connection string.')
    .optional(),
  dsn_file: z.string(expected('a path')).min(1).describe('File that holds the connection string.').optional(),
  dsn: z
    .string(expected('a connection string'))
    .regex(
      /^postgres(ql)?:\/\/[^\s:/@]*@?[^\s@]*$/,
      'expected postgres://user@$host/database without a password; use dsn_env or dsn_file for a secret',
    )
    .describe('The connection string itself, without a password; $host is replaced by the host of the compute.')
    .optional(),
  every,
}).refine(
  (source) => [source.dsn_env, source.dsn_file, source.dsn].filter((given) => given !== undefined).length === 1,
  {
    error: 'expected exactly one of dsn_env, dsn_file, dsn',
  },
);

/** A source for headroom and guards. */
export const Source = z.discriminatedUnion('from', [PrometheusSource, PostgresSource], {
  error: ({ input }) => {
    const from: unknown = typeof input === 'object' && input !== null ? Reflect.get(input, 'from') : undefined;
    const suggestion = typeof from === 'string' ? didYouMean(from, ['prometheus', 'postgres']) : '';
    return `expected a source with from: prometheus or from: postgres${suggestion}`;
  },
});
export type Source = z.infer<typeof Source>;
