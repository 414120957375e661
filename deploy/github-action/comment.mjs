// Keeps one comment of a pull request up to date with a comparison of policies: node comment.mjs FILE
// From a fork, and outside a pull request, it writes the summary of the job instead: there the token may not write.
import { appendFileSync, readFileSync } from 'node:fs';

const MARKER = '<!-- ebb: comparison of policies -->';
const MAX_CHARACTERS = 60_000; // GitHub refuses comments of more than 65,536.
const NOTHING_CHANGES = /^### ebb diff: no change/;

const { GITHUB_API_URL, GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_STEP_SUMMARY, GITHUB_TOKEN } = process.env;
const text = readFileSync(process.argv[2], 'utf8').trim();
const { pull_request: pull } = JSON.parse(readFileSync(GITHUB_EVENT_PATH, 'utf8'));

if (text !== '') {
  appendFileSync(GITHUB_STEP_SUMMARY, `${text}\n`);
  if (pull?.head.repo?.full_name === GITHUB_REPOSITORY) await keepComment();
}

async function keepComment() {
  const body = `${MARKER}\n${text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}\n\n… the rest is in the summary of the job.` : text}`;
  const comment = await ownComment();
  if (comment?.body === body) return;
  if (comment) await request('PATCH', `issues/comments/${comment.id}`, { body });
  else if (!NOTHING_CHANGES.test(text)) await request('POST', `issues/${pull.number}/comments`, { body });
}

/** Only a bot's comment is taken for our own: anybody may write the marker. */
async function ownComment() {
  for (let page = 1; ; page += 1) {
    const comments = await request('GET', `issues/${pull.number}/comments?per_page=100&page=${page}`);
    const own = comments.find(({ body, user }) => user?.type === 'Bot' && body?.startsWith(MARKER));
    if (own || comments.length < 100) return own;
  }
}

async function request(method, path, body) {
  const response = await fetch(`${GITHUB_API_URL}/repos/${GITHUB_REPOSITORY}/${path}`, {
    method,
    headers: {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${GITHUB_TOKEN}`,
      'content-type': 'application/json',
      'x-github-api-version': '2022-11-28',
    },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (response.ok) return response.json();
  const wrong = `${method} ${path} was answered with ${response.status}`;
  process.stdout.write(`::error::The comment could not be written: ${wrong}. The job needs pull-requests: write.\n`);
  process.exit(1);
}
