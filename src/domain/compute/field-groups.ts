import type { ComputeSettings } from './compute.ts';
import type { Desired, FieldGroup } from './desired.ts';

export const FIELD_GROUPS: readonly FieldGroup[] = ['size', 'suspend_timeout'];

/** The fields of a group; undefined unless all of them are known. */
export function fieldsOf(
  group: FieldGroup,
  { minCu, maxCu, suspendTimeoutSeconds }: { [Field in keyof ComputeSettings]?: number | undefined },
): Partial<ComputeSettings> | undefined {
  if (group === 'size') return minCu === undefined || maxCu === undefined ? undefined : { minCu, maxCu };
  return suspendTimeoutSeconds === undefined ? undefined : { suspendTimeoutSeconds };
}

/** What is wanted of a group, as fields; undefined without an opinion. */
export function wantedFields(
  group: FieldGroup,
  { size, suspendTimeoutSeconds }: Desired,
): Partial<ComputeSettings> | undefined {
  return fieldsOf(group, { ...size, suspendTimeoutSeconds: suspendTimeoutSeconds ?? undefined });
}
