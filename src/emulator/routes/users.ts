import { errorAnswer } from '../wire/render.ts';
import { wireTime } from '../wire/times.ts';
import type { Route } from './route.ts';

const NO_LIMIT = -1;

const getCurrentUser: Route = {
  method: 'GET',
  template: '/users/me',
  needs: () => ({ kind: 'personal' }),
  answer({ key }, platform) {
    const world = platform.world();
    const user = world.accounts.users.get(key.userId);
    if (user === undefined) return errorAnswer(404, 'user not found');
    return {
      status: 200,
      body: {
        id: user.id,
        login: user.email,
        email: user.email,
        name: user.name,
        last_name: '',
        image: '',
        plan: world.plan,
        auth_accounts: [],
        projects_limit: NO_LIMIT,
        branches_limit: NO_LIMIT,
        active_seconds_limit: NO_LIMIT,
        max_autoscaling_limit: 16,
      },
    };
  },
};

const listOrganizations: Route = {
  method: 'GET',
  template: '/users/me/organizations',
  needs: () => ({ kind: 'personal' }),
  answer({ key }, platform) {
    const { accounts, plan } = platform.world();
    const memberships = accounts.users.get(key.userId)?.memberships;
    const organizations = [...accounts.organizations.values()]
      .filter(({ id }) => memberships?.has(id))
      .map(({ id, name, createdAtMs }) => ({
        id,
        name,
        handle: id,
        plan,
        managed_by: 'console',
        created_at: wireTime(createdAtMs),
        updated_at: wireTime(createdAtMs),
      }));
    return { status: 200, body: { organizations } };
  },
};

export const USER_ROUTES: readonly Route[] = [getCurrentUser, listOrganizations];
