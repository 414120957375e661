import type { ApiResult, CallOptions, ControlApiError, Project } from '../../ports/control-api.ts';
import type { ApiAccount } from './accounts.ts';
import type { Caller } from './api-call.ts';
import { ask } from './requests.ts';
import { computesOf, PROJECTS } from './routes.ts';
import { projectOf } from './translate.ts';
import { ProjectsPage, readProject, type WireCompute, type WireProject } from './wire.ts';

type ScopedAccount = ApiAccount & Required<Pick<ApiAccount, 'projectIds'>>;

/** The projects of an account that has one key for each, each project a page of its own. */
export type ScopedProjects = (account: ScopedAccount, options: CallOptions) => AsyncGenerator<ApiResult<Project[]>>;

/** One refusal may be of a moment: the list is tried again after a minute, and once that was refused, too, after an hour. Milliseconds. */
const REFUSAL_SERVES_MS = 60_000;
const REPEATED_REFUSAL_SERVES_MS = 3_600_000;

interface Refusal {
  sinceMs: number;
  untilMs: number;
}

/**
 * Whether a project-scoped key may list projects is not specified. So it is tried; where it is refused, or its project is not in
 * the list, the project is known by its computes alone, and by the name that a list has shown before. `nowMs` is monotonic.
 */
export function createScopedProjects(call: Caller, nowMs = () => performance.now()): ScopedProjects {
  const refusals = new Map<string, Refusal>();
  const names = new Map<string, string>();

  function noteRefusal(account: string): void {
    const sinceMs = refusals.get(account)?.sinceMs ?? nowMs();
    const isRepeated = nowMs() - sinceMs >= REFUSAL_SERVES_MS;
    refusals.set(account, {
      sinceMs,
      untilMs: nowMs() + (isRepeated ? REPEATED_REFUSAL_SERVES_MS : REFUSAL_SERVES_MS),
    });
  }

  async function listed(account: ScopedAccount, projectId: string, options: CallOptions) {
    if (nowMs() < (refusals.get(account.name)?.untilMs ?? 0)) return undefined;
    const request = { account: account.name, method: 'GET', template: PROJECTS, keyOfProject: projectId } as const;
    const answer = await ask(call, { ...request, query: { limit: 400 } }, ProjectsPage, options);
    if (!answer.ok && answer.error.code !== 'forbidden' && answer.error.code !== 'not_found') return answer;
    const read = answer.ok ? answer.value.projects.map(readProject) : [];
    const project = read.flatMap((one) => (one.ok ? [one.value] : [])).find(({ id }) => id === projectId);
    if (project === undefined) {
      noteRefusal(account.name);
      return undefined;
    }
    refusals.delete(account.name);
    names.set(projectId, project.name);
    if (!isExpected(account, project)) return { ok: false, error: strangeProjects(account, [projectId]) } as const;
    return { ok: true, value: projectOf(account.name, project) } as const;
  }

  async function projectBy(account: ScopedAccount, projectId: string, options: CallOptions) {
    const project = await listed(account, projectId, options);
    if (project !== undefined) return project;
    const computes = await computesOf(call, { account: account.name, projectId }, options);
    return computes.ok
      ? {
          ok: true as const,
          value: knownByComputes(account.name, projectId, names.get(projectId), computes.value.computes),
        }
      : computes;
  }

  return async function* scopedProjects(account, options) {
    const projectIds = await account.projectIds().catch((error: unknown) => String(error));
    if (typeof projectIds === 'string') {
      const message = `not sent: ${projectIds}`;
      yield { ok: false, error: { code: 'unauthorised', route: `GET ${PROJECTS}`, account: account.name, message } };
      return;
    }
    for (const projectId of projectIds) {
      const project = await projectBy(account, projectId, options);
      yield project.ok ? { ok: true, value: [project.value] } : project;
    }
  };
}

function knownByComputes(
  account: string,
  projectId: string,
  name: string | undefined,
  computes: readonly WireCompute[],
): Project {
  return {
    account,
    projectId,
    ...(name === undefined ? { name: projectId, nameUnknown: true } : { name }),
    regionId: computes[0]?.region_id ?? '',
    updatedAtMs: Math.max(0, ...computes.map((compute) => compute.updated_at ?? compute.created_at)),
  };
}

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
