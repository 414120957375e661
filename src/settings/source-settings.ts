import { z } from 'zod';
import { Source } from '../policy/schema/source.ts';
import type { KnownSources } from '../policy/sources.ts';
import { toSource, withTokenPermission } from '../policy/sources.ts';
import { listOrText, text } from './schema-parts.ts';
import { asWrittenAndDecoded } from './secret.ts';

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
export const allowedOriginsSchema = listOrText(origin, 'must be a list of origins');

/** The sources of the settings. `file` is the settings file; tokens go to `tokenOrigins` only, which no file may give. */
export function knownSourcesOf(
  sources: z.output<typeof sourcesSchema>,
  allowedOrigins: readonly string[],
  { file, tokenOrigins }: { file: string; tokenOrigins: readonly string[] },
): KnownSources {
  const named = Object.entries(sources).map(
    ([name, source]) => [name, withTokenPermission(toSource(name, file, source), tokenOrigins)] as const,
  );
  return { sources: new Map(named), allowedOrigins, tokenOrigins };
}

/** The secret parts of a connection string or a token. */
export function passwordsIn(value: string): string[] {
  const password = URL.canParse(value) ? new URL(value).password : '';
  return [value, ...(password === '' ? [] : asWrittenAndDecoded(password))];
}
