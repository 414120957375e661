import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The schema of policy files in ebb's own package, which lies three folders up from here, also in dist. */
const SCHEMA = fileURLToPath(new URL('../../../schema/policies.schema.json', import.meta.url));

/** The text of a first policy file in `folder`. Its policy is not enabled: a first run must do nothing that nobody thought of. */
export function starterPolicy(folder: string): string {
  const schema = relative(folder, SCHEMA).split(sep).join('/');
  return `# yaml-language-server: $schema=${schema}
#
# A policy to start from. It does nothing yet: say which projects it is for and what they need, take away the line
# "enabled: false", and look at what would happen with: ebb validate, ebb plan, ebb forecast
version: 1
timezone: UTC # of all times in this file, e.g. Europe/Berlin

policies:
  - name: office-hours
    kind: schedule
    enabled: false
    select:
      projects: ["my-project-*"] # names or ids; "!name" would exclude one
    windows:
      - at: Mon-Fri 08:00-18:00
        size: 1-2 # may scale between 1 and 2 compute units (CU)
        suspend_after: 30m # sleeps after half an hour without activity
    otherwise: # evenings, nights, weekends
      size: 0.25-1
      suspend_after: 5m
`;
}
