import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type FileOwners, ownersOfFiles } from './file-owners.ts';
import { findPolicyFiles, shownPath } from './find-files.ts';
import { POLICY_LIMITS } from './limits.ts';
import { type PolicyFileText, type PolicySetResult, parsePolicyFiles } from './parse.ts';
import type { PolicyProblem } from './problem.ts';
import { type KnownSources, NO_SOURCES } from './sources.ts';
import type { Team } from './teams.ts';
import type { ReceiverNames } from './to-domain.ts';

/** The settings that decide how policy files are read. */
export interface PolicySettings {
  /** The sources that policies may name. */
  knownSources: KnownSources;
  /** The permissions of team files; files that belong to no team may do everything. */
  teams: readonly Team[];
  /** The receivers that policies may name. */
  notify: { receivers: ReceiverNames };
}

/** The defaults: the settings define no source, no team and no receiver. */
export const DEFAULT_POLICY_SETTINGS: PolicySettings = {
  knownSources: NO_SOURCES,
  teams: [],
  notify: { receivers: [] },
};

export interface LoadOptions {
  /** Files, folders and globs. */
  paths: readonly string[];
  /** Undefined if the settings could not be read: then names of sources and receivers are not checked. */
  settings: PolicySettings | undefined;
  /** The folder of relative paths; default: the working folder of the process. */
  cwd?: string;
  /** Called before each file is read, with its absolute path. */
  onRead?: (file: string) => void;
  /** True if `paths` are those of all policies: then a team without a file is a problem. */
  isComplete?: boolean;
}

/**
 * Loads a policy set from files. If there is a problem, there is no set; if only teams have problems, `others` is the set
 * without these teams. Never throws because of the files.
 */
export async function loadPolicySet(options: LoadOptions): Promise<PolicySetResult> {
  const { paths, cwd = process.cwd(), onRead, settings, isComplete = false } = options;
  const { teams, knownSources, notify } = settings ?? DEFAULT_POLICY_SETTINGS;
  const found = await findPolicyFiles(paths, cwd);
  const owned = await ownersOfFiles(found, { paths, teams, cwd, isComplete });
  const texts: PolicyFileText[] = [];
  const problems: PolicyProblem[] = [...owned.problems];
  const counts = new Map<Team | undefined, number>();
  for (const { name, real, team } of owned.files) {
    const count = (counts.get(team) ?? 0) + 1;
    counts.set(team, count);
    if (count > POLICY_LIMITS.files) continue;
    const path = shownPath(name, cwd);
    onRead?.(name);
    const read = readText(real);
    if (read.ok) texts.push({ path, text: read.text, team });
    else problems.push({ code: read.code, file: path, message: read.message, team: team?.name });
  }
  for (const [team, count] of counts) {
    if (count <= POLICY_LIMITS.files) continue;
    const message = `${count} policy files; at most ${POLICY_LIMITS.files} are read`;
    problems.push({ code: 'limit', file: paths.join(', '), message, team: team?.name });
  }
  const readReferenced = (policyFile: string, path: string): TextResult => {
    const file = resolve(dirname(resolve(cwd, policyFile)), path);
    onRead?.(file);
    return readText(file);
  };
  const loaded = parsePolicyFiles(texts, {
    readReferenced,
    unread: problems,
    knownSources,
    receivers: notify.receivers,
    areSettingsUnread: settings === undefined,
  });
  return refuseLostFiles(loaded, owned.takenByLink, cwd);
}

/**
 * A team's link can make it the owner of a file that would otherwise belong to no team. If the team's files were then refused, the policies of
 * that file would silently be missing for everyone. So nothing is loaded.
 */
function refuseLostFiles(
  loaded: PolicySetResult,
  takenByLink: FileOwners['takenByLink'],
  cwd: string,
): PolicySetResult {
  if (loaded.ok) return loaded;
  const lost = [...takenByLink].filter(([{ name }]) => loaded.problems.some(({ team }) => team === name));
  if (lost.length === 0) return loaded;
  const problems = lost.map(([team, file]): PolicyProblem => {
    const message = `belongs to team ${team.name}, as a link of the team leads to it, and the files of the team are refused: remove the link`;
    return { code: 'team', file: shownPath(file, cwd), message };
  });
  return { ok: false, problems: [...loaded.problems, ...problems] };
}

type TextResult = { ok: true; text: string } | { ok: false; code: PolicyProblem['code']; message: string };

function readText(file: string): TextResult {
  try {
    return readBounded(file);
  } catch (error) {
    const code = error instanceof TypeError ? 'not UTF-8' : ((error as NodeJS.ErrnoException).code ?? String(error));
    return { ok: false, code: 'files', message: `cannot be read (${code})` };
  }
}

/** Reads no more bytes than allowed, whatever size the file system reports. */
function readBounded(file: string): TextResult {
  // Non-blocking, so that opening a pipe without a writer does not wait.
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
