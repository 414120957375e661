import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fingerprint } from '../../../src/domain/awake/fingerprint.ts';

it.each([
  [`SELECT * FROM users WHERE email = 'a@b.c' AND id = 42`, 'SELECT * FROM users WHERE email = ? AND id = ?'],
  [`SELECT "Name", t1.x FROM t1 WHERE n IN (1, 2,3)`, 'SELECT "Name", t1.x FROM t1 WHERE n IN (?)'],
  [`INSERT INTO a VALUES (1, 'x'), (2, 'y')`, 'INSERT INTO a VALUES (?)'],
  ['SELECT $1 -- trace=abc\n, /* who: me */ f($2)', 'SELECT ? , f(?)'],
  [`ALTER ROLE x PASSWORD 'it''s'`, 'ALTER ROLE x PASSWORD ?'],
  ['DO $body$ secret $body$', 'DO ?'],
  [`SELECT E'a\\' secret' FROM t`, 'SELECT E? …'],
  [`SELECT /* a /* b */ secret */ 1`, 'SELECT …'],
  [`SELECT * FROM t WHERE note = 'cut off`, 'SELECT * FROM t WHERE note = ?'],
])('is %s without values', (statement, text) => {
  expect(fingerprint(statement)).toBe(text);
});

it('never shows what is in a literal or a comment, wherever the text is cut off', () => {
  const secret = fc.stringMatching(/^[Q]{4}[-'"\\$/* a]{0,6}[Q]{4}$/);
  const quoted = secret.map((value) => `'${value.replaceAll("'", "''")}'`);
  const piece = fc.oneof(
    quoted,
    secret.map((value) => `E'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`),
    secret.filter((value) => !value.includes('$')).map((value) => `$t$${value}$t$`),
    secret.filter((value) => !/\*\/|\/\*/.test(value)).map((value) => `/* ${value} */`),
    secret.map((value) => `-- ${value}\n`),
    fc.constantFrom(' SELECT ', ' a.b = ', '"Col"', ' $1 ', ' 12 ', ', '),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.nat(), (pieces, cut) => {
      const text = pieces.join(' ');
      expect(fingerprint(text.slice(0, cut % (text.length + 1)))).not.toContain('Q');
    }),
  );
});
