/** Comparing what was printed with what a page shows. */

export function isSame(one: string, other: string): boolean {
  return steady(one) === steady(other);
}

/** Text without what differs from run to run: the present time, ids, hashes, ports, and how much more than enough something is. */
function steady(text: string): string {
  return text
    .replace(/\b20(?!30)\d\d-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b[A-Z][a-z]{2} \d{1,2} [A-Z][a-z]{2} 20(?!30)\d\d, \d\d:\d\d/g, 'TIME')
    .replace(/\bh-[0-9a-f]{10}\b/g, 'ID')
    .replace(/(policy set:) [0-9a-f]{12}/, '$1 HASH')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/awake for \d+ \w+/g, 'awake for SO LONG')
    .replace(/(as of|is from) \d+ (s|min) ago/g, '$1 SO LONG AGO')
    .replace(/(last used|created) \d+ days ago/g, '$1 SO LONG AGO')
    .replace(/^(?:\d{2,}|[1-9])(?:\.\d+)? CU-hours saved/m, 'AT LEAST 1 CU-hours saved');
}
