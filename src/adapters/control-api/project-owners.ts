import type { ControlApiError } from '../../ports/control-api.ts';
import type { ApiAccount } from './accounts.ts';
import { PROJECTS } from './routes.ts';
import type { WireProject } from './wire.ts';

/** Whether a project belongs to the organization that the account is for. */
export function isExpected({ organization }: ApiAccount, project: WireProject): boolean {
  return organization === undefined || project.org_id === organization;
}

/** The key shows projects that it should not: somebody put the wrong one there. */
export function strangeProjects({ name, organization }: ApiAccount, projectIds: string[]): ControlApiError {
  const [first, ...others] = projectIds;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const message = `the key shows ${first}${more}, which is not of the organization ${organization}; it is left alone`;
  return { code: 'forbidden', route: `GET ${PROJECTS}`, account: name, message };
}
