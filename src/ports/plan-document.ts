/** The document of a plan: what `ebb plan --json` prints, and `GET /api/v1/plan` answers. */
import { z } from 'zod';
import type { FleetPlanJson } from '../domain/evaluate/fleet-plan-json.ts';
import { instant, text } from './document-fields.ts';
import { computeName, cu, knownSettings, reason, SettingsDocument, timeout, verdict } from './documents.ts';

const action = z.object({
  kind: z.enum(['update', 'restart']),
  fields: z
    .object({
      min_cu: cu.exactOptional(),
      max_cu: cu.exactOptional(),
      suspend_timeout_seconds: timeout.exactOptional(),
    })
    .exactOptional(),
  disconnects: z.boolean(),
});

export const verdictOfGuard = z.object({
  state: z.enum(['healthy', 'bad', 'unknown']),
  value: z.number().nullable(),
  limit: z.number().nullable(),
  message: text,
  at: instant.nullable(),
});
export const remedy = z.enum(['notify', 'undo', 'undo_with_restart']);
const loweringGuard = z.object({
  guard: text,
  remedy,
  asked_first: z.boolean().meta({ description: 'Before the lowering; a guard that is not asked watches it after.' }),
  verdict: verdictOfGuard.exactOptional(),
});

/** The plan of a fleet, as `ebb plan --json` prints it. */
export const PlanDocument: z.ZodType<FleetPlanJson> = z
  .object({
    at: instant,
    hash: text,
    computes: z.array(
      z.object({
        ...computeName,
        current: z.object({ ...knownSettings, state: text }),
        desired: SettingsDocument,
        verdict,
        actions: z.array(action),
        held: z.array(action).exactOptional(),
        until: instant.exactOptional(),
        guards: z.array(loweringGuard).exactOptional(),
        reasons: z.array(reason),
      }),
    ),
  })
  .meta({ id: 'Plan' });
