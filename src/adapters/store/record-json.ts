import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { LocatedRecord, RecordStore } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';

/** Must be raised when older versions of ebb would misread a new record. */
const VERSION = 1;

// Loose objects keep unknown fields, so that data of a newer daemon survive a write by an older one.

const Settings = z.looseObject({ minCu: z.number(), maxCu: z.number(), suspendTimeoutSeconds: z.number() });
export const SomeSettings = z.looseObject({
  minCu: z.number().exactOptional(),
  maxCu: z.number().exactOptional(),
  suspendTimeoutSeconds: z.number().exactOptional(),
});

/** An optional value for each group of fields. */
const byGroup = <One extends z.ZodType>(one: One) =>
  z.looseObject({ size: one.exactOptional(), suspend_timeout: one.exactOptional() }).exactOptional();

const Intent = z.looseObject({
  fields: SomeSettings.exactOptional(),
  restart: z.literal(true).exactOptional(),
  before: SomeSettings.exactOptional(),
  atMs: z.number(),
  policy: z.string().exactOptional(),
  requestId: z.string().exactOptional(),
  dropped: z.number().exactOptional(),
  urgent: z.literal(true).exactOptional(),
  unannounced: z.enum(['boundary', 'person', 'other']).exactOptional(),
  unannouncedWhy: z.string().exactOptional(),
  announcementsLostAtMs: z.number().exactOptional(),
  announcedTo: z.array(z.string()).exactOptional(),
  late: z
    .looseObject({
      owner: z.string(),
      announcedAtMs: z.number(),
      announcedToMs: z.number().exactOptional(),
      slotMs: z.number().exactOptional(),
      left: z.number().exactOptional(),
      restarts: z.number(),
      why: z.string().exactOptional(),
    })
    .exactOptional(),
});
const OpenOperation = z.looseObject({
  operationId: z.string(),
  action: z.string(),
  startedAtMs: z.number(),
  policy: z.string().exactOptional(),
  fields: SomeSettings.exactOptional(),
  failureCounted: z.literal(true).exactOptional(),
});
const OneFailure = z.looseObject({
  count: z.number(),
  lastAtMs: z.number(),
  desired: SomeSettings,
  message: z.string(),
  refused: z.literal(true).exactOptional(),
});
const Failures = z.looseObject({
  size: OneFailure.exactOptional(),
  suspend_timeout: OneFailure.exactOptional(),
  restart: OneFailure.exactOptional(),
});
const LostWrites = z.array(
  z.looseObject({ fields: SomeSettings, atMs: z.number(), seenAtMs: z.number().exactOptional() }),
);
const OneWanted = z.looseObject({
  fields: SomeSettings,
  sinceMs: z.number(),
  notedAtMs: z.number().exactOptional(),
});
const Mark = z.looseObject({
  fields: SomeSettings,
  seenAtMs: z.number(),
  raises: z.boolean(),
  updatedAtMs: z.number().exactOptional(),
});
const LastChange = z.looseObject({
  before: SomeSettings,
  to: SomeSettings.exactOptional(),
  answeredAtMs: z.number(),
  updatedAtMs: z.number().exactOptional(),
});
const Lags = z.literal(true);
const Candidate = z.looseObject({ fields: SomeSettings, readAtMs: z.number() });
const BaselineChanged = z.looseObject({ seenAtMs: z.number(), before: SomeSettings });
const Restore = z.looseObject({
  owner: z.string(),
  askedAtMs: z.number(),
  expiresAtMs: z.number(),
  now: z.literal(true).exactOptional(),
  fields: z.array(z.enum(['size', 'suspend_timeout'])).exactOptional(),
});
const Sums = z.tuple([z.number(), z.number()]);
const Kept = z.looseObject({
  arm: z.literal(['control', 'treated']).nullable(),
  isKept: z.boolean(),
  sinceMs: z.number(),
  control: Sums,
  treated: Sums,
});
const OneTrial = z.looseObject({
  slot: z.number(),
  flipDelayMs: z.number(),
  stoppedAtMs: z.number().exactOptional(),
  baseline: Settings.nullable(),
  terms: z.string(),
  sinceMs: z.number(),
  kept: Kept.exactOptional(),
});
const Instants = z.array(z.number());
const Finding = z.looseObject({
  guard: z.string(),
  loweredAtMs: z.number(),
  from: SomeSettings,
  to: SomeSettings,
  badSinceMs: z.number(),
  foundAtMs: z.number(),
  remedy: z.enum(['notify', 'undo', 'undo_with_restart']),
  obstacle: z.string().exactOptional(),
});
const Floor = z.looseObject({
  guard: z.string(),
  sinceMs: z.number(),
  fields: SomeSettings,
  lowered: SomeSettings,
  policy: z.string(),
  terms: z.string(),
});

const Stored = z.looseObject({
  version: z.literal(VERSION),
  record: z.looseObject({
    baseline: Settings,
    firstSeenAtMs: z.number(),
    enforcedSinceMs: z.number().exactOptional(),
    lastApplied: SomeSettings,
    lastDecidedAtMs: z.number(),
    lastSentAtMs: z.number().exactOptional(),
    absentSinceMs: z.number().exactOptional(),
    intent: Intent.exactOptional(),
    openOperations: z.array(OpenOperation),
    operationEndedAtMs: z.number().exactOptional(),
    failures: Failures.exactOptional(),
    lostWrites: byGroup(LostWrites),
    wanted: byGroup(OneWanted),
    manual: byGroup(Mark),
    lastChanges: byGroup(LastChange),
    lagging: z
      .looseObject({
        size: Lags.exactOptional(),
        suspend_timeout: Lags.exactOptional(),
        updatedAtMs: z.number().exactOptional(),
      })
      .exactOptional(),
    baselineChanges: byGroup(BaselineChanged),
    baselineCandidates: byGroup(Candidate),
    reversals: byGroup(Instants),
    lastDisruption: z
      .looseObject({ atMs: z.number(), lowered: z.boolean(), policy: z.string().exactOptional() })
      .exactOptional(),
    trials: z.record(z.string(), OneTrial).exactOptional(),
    projectName: z.string().exactOptional(),
    renamed: z.looseObject({ from: z.string(), atMs: z.number(), by: z.array(z.string()) }).exactOptional(),
    restore: Restore.exactOptional(),
    setBy: byGroup(z.string()),
    guardFinding: Finding.exactOptional(),
    floors: byGroup(Floor),
    oneFieldGroupAtATime: z.literal(true).exactOptional(),
  }),
}) satisfies z.ZodType<{ version: number; record: ComputeRecord }>;
export const StoredRecord = Stored.shape.record;

export function recordToJson(record: ComputeRecord): string {
  return JSON.stringify({ version: VERSION, record });
}

export async function pendingWritesOf(
  projectIds: Iterable<string>,
  recordsOf: (projectId: string) => Promise<ReadonlyMap<string, ComputeRecord>>,
): Promise<LocatedRecord[]> {
  const pendingByProject = await Promise.all(
    [...projectIds].map(async (projectId) => {
      const records = [...(await recordsOf(projectId))];
      return records.flatMap(([computeId, record]) => (record.intent ? [{ projectId, computeId, record }] : []));
    }),
  );
  return pendingByProject.flat();
}

export type RecordReader = ReturnType<typeof createRecordReader>;

/**
 * Parses stored records. A record that can't be parsed is logged once and stays stored, since its content, above all the baseline, could not be
 * restored.
 */
export function createRecordReader({ log }: { log: Log }) {
  const broken = new Map<string, string>();

  function logIgnored(projectId: string, computeId: string): void {
    const message = `the stored record of ${computeId} is of another version or broken: the compute is not touched`;
    log.error({ event: 'ebb.record_unreadable', project: projectId, compute: computeId }, message);
  }

  return {
    /** See {@link RecordStore.brokenRecords}. */
    broken: broken as ReadonlyMap<string, string>,
    /** The valid records of a project, by compute id. */
    readAll(
      projectId: string,
      texts: Iterable<readonly [computeId: string, text: string]>,
    ): Map<string, ComputeRecord> {
      const before = new Map(broken);
      for (const [computeId, project] of before) if (project === projectId) broken.delete(computeId);
      const records = new Map<string, ComputeRecord>();
      for (const [computeId, text] of texts) {
        const parsed = Stored.safeParse(parseJson(text));
        if (parsed.success) {
          records.set(computeId, parsed.data.record);
          continue;
        }
        broken.set(computeId, projectId);
        if (!before.has(computeId)) logIgnored(projectId, computeId);
      }
      return records;
    },
  };
}
