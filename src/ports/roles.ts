/** Permissions of a token's holder: everything, or what its roles allow. */

export const ROLES = ['read', 'operate', 'freeze', 'approve'] as const;
export type Role = (typeof ROLES)[number];

/** Roles that may be limited to a team's scope. */
const OF_TEAMS: ReadonlySet<string> = new Set<Role>(['operate', 'freeze', 'approve']);

/** A role, for everything or for one team's scope. */
export interface Grant {
  role: Role;
  team?: string;
}

/** The holder of a token: a person, or everyone who shares it. */
export interface TokenHolder {
  name: string | undefined;
  /** Absent: everything is allowed. Any grant allows reading; none allows nothing. */
  grants?: readonly Grant[];
}

/** Parses roles as they are written: `operate, approve team-web`. Undefined for an invalid text. */
export function parseGrants(text: string): Grant[] | undefined {
  const grants = text.split(',').map((written): Grant | undefined => {
    const [role = '', team, ...more] = written.trim().split(/\s+/);
    if (!isRole(role) || more.length > 0) return undefined;
    if (team === undefined) return { role };
    return OF_TEAMS.has(role) ? { role, team } : undefined;
  });
  return grants.every((grant) => grant !== undefined) ? grants : undefined;
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

/** A login provider whose tokens (JWTs) are accepted. */
export interface LoginProvider {
  /** The `iss` of its tokens. */
  issuer: string;
  /** The `aud` that they must have. */
  audience: string;
  /** The URL of its keys. */
  jwksUrl: string;
  /** The claim that names the person. */
  nameClaim: string;
  /** The claim that lists the person's groups. */
  groupsClaim: string;
  /** Permissions of a group's members. */
  groups: ReadonlyMap<string, readonly Grant[]>;
}
