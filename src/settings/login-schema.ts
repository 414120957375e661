import { z } from 'zod';
import { isLoopbackHost } from '../common/loopback.ts';
import { type LoginProvider, parseGrants, ROLES } from '../ports/roles.ts';
import { text } from './schema-parts.ts';

const FORM =
  'must be a mapping such as {issuer: "https://login.example", audience: ebb, jwks_url: …, groups: {web: [operate team-web]}}';
const ROLE_FORM = `must be one of ${ROLES.join(', ')}; operate, freeze and approve may be followed by a team`;

const role = text().transform((written, context) => {
  const [grant, ...more] = parseGrants(written) ?? [];
  if (grant && more.length === 0) return grant;
  context.addIssue({ code: 'custom', message: ROLE_FORM });
  return z.NEVER;
});

const shape = {
  issuer: text(),
  audience: text(),
  jwks_url: text().refine(isSafeUrl, { error: 'must be an https URL, such as https://login.example/jwks' }),
  name_claim: text().default('sub'),
  groups_claim: text().default('groups'),
  groups: z
    .record(z.string().min(1), z.array(role, { error: 'must be a list of roles' }).min(1, { error: 'names no role' }), {
      error: 'must map groups to lists of roles',
    })
    .refine((groups) => Object.keys(groups).length > 0, { error: 'names no group, so nobody could log in' }),
};

export const LOGIN_KEYS: readonly string[] = Object.keys(shape);

export const loginSchema = z.strictObject(shape, { error: FORM });

/** True for https, and for http on this machine: the provider must be authenticated, since its keys decide which tokens are valid. */
function isSafeUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

export function loginOf(login: z.output<typeof loginSchema> | undefined): LoginProvider | undefined {
  if (!login) return undefined;
  const { issuer, audience, jwks_url: jwksUrl, name_claim: nameClaim, groups_claim: groupsClaim, groups } = login;
  return { issuer, audience, jwksUrl, nameClaim, groupsClaim, groups: new Map(Object.entries(groups)) };
}

/** A problem for each team that a role names and `teams` lacks. */
export function unknownTeams({ groups }: z.output<typeof loginSchema>, teams: readonly string[]): string[] {
  return Object.entries(groups).flatMap(([group, grants]) =>
    grants.flatMap(({ team }) =>
      team === undefined || teams.includes(team)
        ? []
        : `the group ${group} names the team ${team}, which teams does not have`,
    ),
  );
}
