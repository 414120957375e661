import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { findPolicyFiles, shownPath } from './find-files.ts';
import { POLICY_LIMITS } from './limits.ts';
import { type PolicyFileText, type PolicySetResult, parsePolicyFiles } from './parse.ts';
import type { PolicyProblem } from './problem.ts';
import type { ReceiverNames } from './receivers.ts';
import type { KnownSources } from './sources.ts';
import { type Team, teamsOfFiles } from './teams.ts';

export interface LoadOptions {
  /** Files, folders and globs. */
  paths: readonly string[];
  /** The folder from which relative paths start; that of the process if absent. */
  cwd?: string;
  /** Called for every file that is read, by its absolute path; also of one that can't be. */
  onRead?: (file: string) => void;
  /** What the settings say of sources of connection counts. */
  knownSources?: KnownSources;
  /** Who can be told something: what policies may name. */
  receivers?: ReceiverNames;
  /** Whose files may do what; files of no team may do everything. */
  teams?: readonly Team[];
}

/**
 * Loads a policy set from files. All or nothing: what can't be found, read or understood is a problem, and with any problem
 * there is no set; only teams don't hinder each other (`others`). Never throws for anything that is in the files or about them.
 */
export async function loadPolicySet(options: LoadOptions): Promise<PolicySetResult> {
  const { paths, cwd = process.cwd(), onRead, knownSources, receivers, teams = [] } = options;
  const found = await findPolicyFiles(paths, cwd);
  const texts: PolicyFileText[] = [];
  const { teamOf, problems: ofTeams } = await teamsOfFiles(teams, cwd);
  const problems: PolicyProblem[] = [...found.problems, ...ofTeams];
  const counts = new Map<Team | undefined, number>();
  for (const file of found.files) {
    const team = teamOf.get(file);
    const count = (counts.get(team) ?? 0) + 1;
    counts.set(team, count);
    if (count > POLICY_LIMITS.files) continue;
    const path = shownPath(file, cwd);
    onRead?.(file);
    const read = readText(file);
    if (read.ok) texts.push({ path, text: read.text, ...(team && { team }) });
    else problems.push({ code: read.code, file: path, message: read.message, ...(team && { team: team.name }) });
  }
  for (const [team, count] of counts) {
    if (count <= POLICY_LIMITS.files) continue;
    const message = `${count} policy files; at most ${POLICY_LIMITS.files} are read`;
    problems.push({ code: 'limit', file: paths.join(', '), message, ...(team && { team: team.name }) });
  }
  const readReferenced = (policyFile: string, path: string): Read => {
    const file = resolve(dirname(resolve(cwd, policyFile)), path);
    onRead?.(file);
    return readText(file);
  };
  const ofSettings = { ...(knownSources && { knownSources }), ...(receivers && { receivers }) };
  return parsePolicyFiles(texts, { readReferenced, unread: problems, ...ofSettings });
}

type Read = { ok: true; text: string } | { ok: false; code: PolicyProblem['code']; message: string };

function readText(file: string): Read {
  try {
    return readBounded(file);
  } catch (error) {
    const code = error instanceof TypeError ? 'not UTF-8' : ((error as NodeJS.ErrnoException).code ?? String(error));
    return { ok: false, code: 'files', message: `cannot be read (${code})` };
  }
}

/** Reads at most the allowed number of bytes, whatever the file system says that there is. */
function readBounded(file: string): Read {
  // Not blocking, so that a pipe without a writer is no reason to wait.
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(handle).isFile()) return { ok: false, code: 'files', message: 'not a file' };
    const buffer = Buffer.alloc(POLICY_LIMITS.fileBytes + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size < buffer.length; size += read) {
      read = readSync(handle, buffer, size, buffer.length - size, null);
    }
    if (size > POLICY_LIMITS.fileBytes) {
      return { ok: false, code: 'limit', message: `larger than ${POLICY_LIMITS.fileBytes / 1024} KiB` };
    }
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, size)) };
  } finally {
    closeSync(handle);
  }
}
