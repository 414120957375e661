import { schemaPath } from '../schema.ts';

/** The text of a first policy file, for a folder beside that of the schemas. Its policy is not enabled: a first run must do nothing that nobody thought of. */
export function starterPolicy(): string {
  return `# yaml-language-server: $schema=../${schemaPath('policies')}
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
