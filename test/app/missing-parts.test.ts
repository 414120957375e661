import { expect, it } from 'vitest';
import { missingParts } from '../../src/app/fleet/missing-parts.ts';
import type { ControlApiError, Project } from '../../src/ports/control-api.ts';

it('names the projects of each error in the order of their names, whichever was read first', () => {
  const error = (projectId: string | undefined, code: ControlApiError['code']) =>
    ({ code, message: 'm', route: 'r', ...(projectId !== undefined && { projectId }) }) as ControlApiError;
  const errors = [
    error('p-2', 'forbidden'),
    error('p-1', 'forbidden'),
    error(undefined, 'timeout'),
    error('p-2', 'forbidden'),
  ];
  const projects = [
    { projectId: 'p-1', name: 'docs' },
    { projectId: 'p-2', name: 'shop' },
  ] as Project[];
  expect(missingParts(errors, { explain: ({ code }) => code, projects })).toEqual(['docs, shop: forbidden', 'timeout']);
});
