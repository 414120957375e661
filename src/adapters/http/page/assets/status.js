/**
 * Keeps a page fresh: asks for it again and exchanges the parts that have changed. Everything works without it, too.
 * A part in which text is selected stays as it is until the selection ends.
 */
const EVERY_MS = 10_000;
const PATIENCE_MS = 8_000;

const address = document.querySelector('main')?.dataset.refreshes;
const button = document.getElementById('pause');
const connection = document.getElementById('connection');
let isPaused = false;
let timer;

function say(words) {
  if (connection && connection.textContent !== words) connection.textContent = words;
}

async function refresh() {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    // biome-ignore lint/style/noRestrictedGlobals: this runs in a browser.
    const answer = await fetch(address, { headers: { accept: 'text/html' }, signal });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    inLocalTime(fresh);
    for (const part of document.querySelectorAll('[data-live]')) exchange(part, fresh.getElementById(part.id));
    say('');
  } catch {
    say('Not connected: what is shown is old');
  }
}

const DAY_MS = 86_400_000;
const WRITTEN = /^(?:\d{4}-\d{2}-\d{2} |[A-Z][a-z]{2} )?(\d{2}:\d{2}(?::\d{2})?)( UTC)?$/;

/** Times are served in UTC, but a browser knows its reader's time zone. Weekday and time for the next six days, else date and time. */
function inLocalTime(root) {
  const two = (number) => String(number).padStart(2, '0');
  // Today is the day by the daemon's clock, not by the reader's.
  const asOf = root.querySelector('#as-of time');
  const today = asOf ? new Date(asOf.dateTime) : new Date();
  for (const time of root.querySelectorAll('time[datetime]')) {
    const [, clock] = WRITTEN.exec(time.textContent) ?? [];
    if (clock === undefined) continue;
    const at = new Date(time.dateTime);
    const seconds = clock.length > 5 ? `:${two(at.getSeconds())}` : '';
    const local = `${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
    const isToday = at.toDateString() === today.toDateString();
    const isNear = at > today && at - today < 6 * DAY_MS;
    const weekday = at.toLocaleDateString('en', { weekday: 'short' });
    const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    // The end of a span has the day of its beginning.
    const isClock = isToday || seconds || 'clock' in time.dataset;
    time.textContent = isClock ? local : `${isNear ? weekday : date} ${local}`;
    time.title = time.dateTime;
  }
  const zone = root.getElementById('zone');
  if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function exchange(part, fresh) {
  if (!fresh || isInUse(part) || part.innerHTML === fresh.innerHTML) return;
  const focused = part.contains(document.activeElement) ? keyOf(document.activeElement) : undefined;
  const open = [...part.querySelectorAll('details[open]')].map(({ id }) => id);
  part.replaceChildren(...fresh.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute('open', '');
  if (focused === undefined) return;
  const again = [...part.querySelectorAll('a, button, summary')].find((one) => keyOf(one) === focused);
  again?.focus({ preventScroll: true });
}

/** True if text in the part is selected. */
function isInUse(part) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(part, true);
}

/** Identifies an element, to find its successor after its part was replaced. */
function keyOf(element) {
  return `${element.tagName} ${element.id} ${element.getAttribute('href')} ${element.textContent}`;
}

async function tick() {
  clearTimeout(timer);
  if (!isPaused && !document.hidden) await refresh();
  clearTimeout(timer);
  timer = setTimeout(tick, EVERY_MS);
}

function togglePause() {
  isPaused = !isPaused;
  button.setAttribute('aria-pressed', String(isPaused));
  if (!isPaused) void tick();
}

inLocalTime(document);
if (address !== undefined && button) {
  button.hidden = false;
  button.addEventListener('click', togglePause);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void tick();
  });
  timer = setTimeout(tick, EVERY_MS);
}
