export const ROLES = ['read', 'operate', 'freeze', 'approve'] as const;
export type Role = (typeof ROLES)[number];

/** Roles that may be limited to a team's scope. */
const OF_TEAMS: ReadonlySet<string> = new Set<Role>(['operate', 'freeze', 'approve']);

/** A role, everywhere or in one team's scope. */
export interface Grant {
  role: Role;
  team?: string;
}

export interface TokenHolder {
  /** Undefined where several people share the token. */
  name: string | undefined;
  /** Absent: everything is allowed. Any grant allows reading; an empty list allows nothing. */
  grants?: readonly Grant[];
}

/** Parses `operate, approve team-web`. Undefined for an invalid text. */
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
