import { Hono } from 'hono';
import { z } from 'zod';
import type { Platform } from '../platform.ts';
import { createKeyAnswer, revokeKeyAnswer } from '../routes/keys.ts';
import { refusalAnswer, renderKey } from '../wire/render.ts';
import { FIRST_USER_ID } from '../world/accounts.ts';
import { keysOf, type NewKey } from '../world/keys.ts';
import { respond, withBody } from './faults.ts';

const user = z.string().default(FIRST_USER_ID);
const name = z.string().min(1).default('made in the console');
const key = z.string().min(1).optional();

const keyBody = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('personal'), user, name, key }),
  z.strictObject({ kind: z.literal('organization'), org: z.string(), user, name, key }),
  z.strictObject({ kind: z.literal('project'), project: z.string(), user, name, key }),
]);

const memberBody = z.strictObject({ org: z.string(), user, role: z.enum(['admin', 'member', 'none']) });

const planBody = z.strictObject({ plan: z.enum(['free', 'launch', 'scale']), org: z.string().optional() });

const moveBody = z.strictObject({ org: z.string().nullable() });

function toNewKey(body: z.output<typeof keyBody>, platform: Platform): NewKey {
  const common = { name: body.name, userId: body.user, token: body.key };
  if (body.kind === 'personal') return { ...common, kind: 'personal' };
  if (body.kind === 'organization') return { ...common, kind: 'organization', orgId: body.org };
  const orgId = platform.world().projects.get(body.project)?.orgId;
  return { ...common, kind: 'project', projectId: body.project, orgId };
}

function mountKeys(app: Hono, platform: Platform): void {
  app.get('/keys', () => {
    const { accounts } = platform.world();
    const keys = keysOf(accounts, 'anyone').map((key) => ({ kind: key.kind, ...renderKey(key, accounts) }));
    return respond({ status: 200, body: { keys } });
  });
  app.post('/keys', (context) =>
    withBody(context, keyBody, (body) => createKeyAnswer(platform, toNewKey(body, platform))),
  );
  app.delete('/keys/:id', (context) => respond(revokeKeyAnswer(platform, context.req.param('id'), 'anyone')));
}

/** Routes for what people do in the web console: keys of any kind, members of organizations, plans, moving a project. */
export function createAccountRoutes(platform: Platform): Hono {
  const app = new Hono();
  mountKeys(app, platform);
  app.post('/plan', (context) =>
    withBody(context, planBody, ({ plan, org }) => {
      const outcome = platform.run({ kind: 'change_plan', plan, orgId: org });
      return outcome.ok ? { status: 200, body: { plan, org } } : refusalAnswer(outcome.refusal);
    }),
  );
  app.post('/members', (context) =>
    withBody(context, memberBody, ({ org, user: userId, role }) => {
      const outcome = platform.run({ kind: 'set_membership', userId, orgId: org, role });
      return outcome.ok ? { status: 200, body: { org, user: userId, role } } : refusalAnswer(outcome.refusal);
    }),
  );
  app.post('/projects/:id/move', (context) =>
    withBody(context, moveBody, ({ org }) => {
      const projectId = context.req.param('id');
      const outcome = platform.run({ kind: 'move_project', projectId, orgId: org ?? undefined });
      return outcome.ok ? { status: 200, body: { project: projectId, org } } : refusalAnswer(outcome.refusal);
    }),
  );
  return app;
}
