import { z } from 'zod';
import { Source } from '../policy/schema/source.ts';
import type { KnownSources } from '../policy/sources.ts';
import { toSource } from '../policy/sources.ts';
import { asWrittenAndDecoded } from './password-forms.ts';
import { text } from './schema-parts.ts';
import { type Secret, secret } from './secret.ts';
import type { Environment } from './sources.ts';

const ORIGIN = 'must be an origin such as https://prometheus.example:9090, without a path';

/** An origin in its one form. */
const origin = text().transform((value, context) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isOrigin = url !== undefined && /^https?:$/.test(url.protocol) && /^https?:\/\/[^/?#@]+\/?$/i.test(value);
  if (isOrigin) return url.origin;
  context.addIssue({ code: 'custom', message: ORIGIN });
  return z.NEVER;
});

/** `sources` of `ebb.yaml`: the same words as in a policy file. */
export const sourcesSchema = z.record(z.string(), Source, { error: 'must be a mapping of names to sources' });

/** `sources_allowed_origins` of `ebb.yaml`. */
export const allowedOriginsSchema = z.array(origin, { error: 'must be a list of origins' });

/** What the settings say of sources. `file` is the settings file. */
export function knownSourcesOf(
  sources: z.output<typeof sourcesSchema>,
  allowedOrigins: readonly string[],
  file: string,
): KnownSources {
  const named = Object.entries(sources).map(([name, source]) => [name, toSource(name, file, source)] as const);
  return { sources: new Map(named), allowedOrigins };
}

const SOURCE_VARIABLE = /^EBB_(?:DSN_[A-Z0-9_]+|PROMETHEUS_TOKEN(?:_[A-Z0-9_]+)?)$/;

/** The variables that sources may name, whether one does or not; an empty one counts as not set. */
export function sourceVariables(env: Environment): ReadonlyMap<string, Secret> {
  const given = Object.entries(env).filter(([name, value]) => SOURCE_VARIABLE.test(name) && value);
  return new Map(given.map(([name, value = '']) => [name, secret(value.trim())]));
}

/** What of a connection string or a token must never be seen. */
export function passwordsIn(value: string): string[] {
  const password = URL.canParse(value) ? new URL(value).password : '';
  return [value, ...(password === '' ? [] : asWrittenAndDecoded(password))];
}
