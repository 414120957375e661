import { Hono } from 'hono';
import { z } from 'zod';
import type { Platform } from '../platform.ts';
import { type Answer, errorAnswer, refusalAnswer, renderKey, renderNewKey, renderRevokedKey } from '../wire/render.ts';
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
  const common = { name: body.name, userId: body.user, ...(body.key === undefined ? {} : { token: body.key }) };
  if (body.kind === 'personal') return { ...common, kind: 'personal' };
  if (body.kind === 'organization') return { ...common, kind: 'organization', orgId: body.org };
  const orgId = platform.world().projects.get(body.project)?.orgId;
  const scoped = { ...common, kind: 'project' as const, projectId: body.project };
  return orgId === undefined ? scoped : { ...scoped, orgId };
}

function createKey(platform: Platform, body: z.output<typeof keyBody>): Answer {
  const outcome = platform.run({ kind: 'create_key', wanted: toNewKey(body, platform) });
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  return outcome.key === undefined
    ? errorAnswer(500, 'incomplete key')
    : { status: 200, body: renderNewKey(outcome.key) };
}

function revokeKey(platform: Platform, keyId: number): Answer {
  const outcome = platform.run({ kind: 'revoke_key', keyId, owner: 'anyone' });
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  return outcome.key === undefined
    ? errorAnswer(500, 'incomplete key')
    : { status: 200, body: renderRevokedKey(outcome.key) };
}

function mountKeys(app: Hono, platform: Platform): void {
  app.get('/keys', () => {
    const { accounts } = platform.world();
    const keys = keysOf(accounts, 'anyone').map((one) => ({ kind: one.kind, ...renderKey(one, accounts) }));
    return respond({ status: 200, body: { keys } });
  });
  app.post('/keys', (context) => withBody(context, keyBody, (body) => createKey(platform, body)));
  app.delete('/keys/:id', (context) => respond(revokeKey(platform, Number(context.req.param('id')))));
}

/** Actions of people in the web console: keys of any kind, members of organizations, moving a project. */
export function createAccountRoutes(platform: Platform): Hono {
  const app = new Hono();
  mountKeys(app, platform);
  app.post('/plan', (context) =>
    withBody(context, planBody, ({ plan, org }) => {
      platform.run({ kind: 'change_plan', plan, ...(org !== undefined && { orgId: org }) });
      return { status: 200, body: { plan, org } };
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
      const outcome = platform.run({ kind: 'move_project', projectId, ...(org === null ? {} : { orgId: org }) });
      return outcome.ok ? { status: 200, body: { project: projectId, org } } : refusalAnswer(outcome.refusal);
    }),
  );
  return app;
}
