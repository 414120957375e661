import type { Project } from '../../ports/control-api.ts';

/** An organization of an account, and its projects that are known. */
export interface Organization {
  account: string;
  organization: string;
  projectIds: string[];
}

/** The organizations of a fleet: those that settings name, and those of the projects. */
export function organizationsOf(
  projects: Iterable<Pick<Project, 'account' | 'projectId' | 'organizationId'>>,
  accounts: readonly { name: string; organization?: string }[],
): Organization[] {
  const found = new Map<string, Organization>();
  for (const { name: account, organization } of accounts) {
    if (organization !== undefined) found.set(`${account} ${organization}`, { account, organization, projectIds: [] });
  }
  for (const { account, organizationId: organization, projectId } of projects) {
    if (organization === undefined) continue;
    const known = found.get(`${account} ${organization}`) ?? { account, organization, projectIds: [] };
    known.projectIds.push(projectId);
    found.set(`${account} ${organization}`, known);
  }
  return [...found.values()];
}
