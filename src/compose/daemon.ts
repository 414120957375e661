import { createAuditFile } from '../adapters/store/audit-file.ts';
import { startAnnouncements } from '../app/announcements/announcements.ts';
import { createBoundaries } from '../app/boundaries/boundaries.ts';
import { createBoundaryReconciles } from '../app/boundaries/boundary-reconciles.ts';
import { startReadyRounds } from '../app/boundaries/ready-rounds.ts';
import { startSampling } from '../app/connections/sampler.ts';
import { type Daemon, type DaemonDeps, startDaemon } from '../app/daemon.ts';
import { createInventory } from '../app/fleet/inventory.ts';
import { startLeaderRefresh } from '../app/group/leader-refresh.ts';
import { onlyAsLeader, withRightClock } from '../app/group/pause-queues.ts';
import { startDelivery } from '../app/notifications/delivery.ts';
import { createFollowOperations } from '../app/operations/follow.ts';
import { type AuditCopying, startAuditExport } from '../app/operator/audit-export.ts';
import { createAuditWebhook } from '../app/operator/audit-webhook.ts';
import { startReporting } from '../app/operator/daemon-reports.ts';
import { startWasteRounds } from '../app/recommend/waste-rounds.ts';
import { createReconcile } from '../app/reconcile/reconcile.ts';
import { startResync } from '../app/resync.ts';
import { startReloading } from '../app/rollout/reload.ts';
import { startUsageRounds } from '../app/usage/usage-rounds.ts';
import type { Result } from '../common/result.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import { holidaysOf } from '../policy/calendars/public-holidays.ts';
import type { RulesSource } from '../ports/rules.ts';
import type { Settings } from '../settings/settings.ts';
import { explainApiError } from './control-api.ts';
import type { DaemonParts } from './daemon-parts.ts';

/** Starts the daemon that these parts make. */
export async function startParts(
  parts: DaemonParts,
  options: { settings: Settings; source: RulesSource | undefined; signal: AbortSignal; version: string },
): Promise<Result<Daemon>> {
  const { settings, source, signal } = options;
  const { basics, outside, known, deciding, group, hasRunHere } = parts;
  const accounts = settings.accounts.map(({ name }) => name);
  const started = await startDaemon(
    {
      ...{ ...basics, ...outside, ...known, ...deciding, ...group, hasRunHere, reportEvent: parts.reportEvent },
      ...{ handlers: handlersOf(parts), background: backgroundOf(parts, options) },
      startReloading: () => reloadingOf(parts, source),
    },
    { apiUrl: settings.apiUrl, accounts, queue: settings.queue.shown },
    signal,
  );
  if (!started.ok) return { ok: false, problem: explainApiError(settings, started.error) };
  return { ok: true, value: started.daemon };
}

function handlersOf({ basics, outside, known, deciding, group, reportEvent }: DaemonParts): DaemonDeps['handlers'] {
  const reading = { ...basics, ...outside, ...known, ...deciding };
  const writing = { ...reading, ...group, reportEvent };
  return {
    inventory: onlyAsLeader(group, createInventory({ ...reading, ...group })),
    boundaries: withRightClock(group, createBoundaries({ ...reading, ...group })),
    crossings: withRightClock(group, createBoundaryReconciles(writing)),
    reconcile: withRightClock(group, createReconcile(writing)),
    operations: withRightClock(group, createFollowOperations(writing)),
  };
}

function backgroundOf(
  parts: DaemonParts,
  { settings, version }: { settings: Settings; version: string },
): DaemonDeps['background'] {
  const { basics, outside, known, deciding, group } = parts;
  const { accounts } = settings;
  const limits = limitsOf(settings.apiRequestsPerMinute, settings.apiReserve);
  return [
    () => startUsageRounds({ ...basics, ...outside, ...known, ...deciding, ...group, accounts }),
    () => startReadyRounds({ ...basics, ...outside, ...known, ...deciding, ...group, limits }),
    () => startWasteRounds({ ...basics, ...outside, ...known, ...deciding, ...group, holidaysOf }),
    () => startResync({ ...basics, ...outside, ...known, ...deciding, ...group }),
    () => startAnnouncements({ ...basics, ...outside, ...known, ...deciding, ...group }),
    () => startDelivery({ ...basics, ...outside, ...deciding, ...group }),
    () => startSampling({ ...basics, ...outside, ...known, ...deciding, ...group }),
    () => startLeaderRefresh({ ...basics, ...outside, ...known, ...deciding, ...group }),
    () => startReporting({ ...basics, ...outside, ...known, ...deciding, ...group, version }),
    ...auditCopies(parts, settings).map((copy) => () => startAuditExport({ ...basics, ...outside, ...known }, copy)),
  ];
}

function auditCopies({ basics, outside, group }: DaemonParts, { audit: { file, webhook } }: Settings): AuditCopying[] {
  const copies: AuditCopying[] = [];
  if (file !== undefined)
    copies.push({ task: 'audit_export', to: createAuditFile({ path: file, now: () => basics.clock.now() }) });
  if (webhook)
    copies.push({ task: 'audit_webhook', to: createAuditWebhook({ ...basics, ...outside, ...group }, webhook) });
  return copies;
}

function reloadingOf(parts: DaemonParts, source: RulesSource | undefined) {
  const { basics, outside, known, deciding, group, reportEvent } = parts;
  return startReloading({ ...basics, ...outside, ...known, ...deciding, ...group, reportEvent }, source);
}
