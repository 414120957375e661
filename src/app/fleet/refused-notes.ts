/** What is to be told of projects whose branches the key may not list, where policies select by branch. */
export function refusedNotes(projects: readonly string[]): string[] {
  return projects.map(
    (project) =>
      `the key may not list the branches of ${project}: only freezes count there of the policies whose selection hangs on a branch's name or role`,
  );
}
