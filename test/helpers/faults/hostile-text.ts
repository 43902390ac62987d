/**
 * Units that a backtracking parser may read repeatedly: separators, blanks, unclosed openings, keywords of rsm's syntaxes.
 */
const units = [
  ' ',
  '\t',
  '\n',
  ',',
  ', ',
  '/',
  '=',
  '; ',
  ':',
  '.',
  '-',
  '"',
  '\\',
  '(',
  '[',
  '{',
  '0',
  '1-',
  'a,',
  'a ',
  'a=b;',
  '@*^',
  '@a:b,',
  'a[1-9]',
  '# ',
  '#\n',
  '*',
  '?',
  '%',
  '%20',
  '\u00e9',
  '\u0000',
  '<!--',
]

/** Texts of this many characters that repeat one unit, alone and between two letters. */
export const hostileTexts = (signs: number): string[] =>
  units.flatMap((unit) => {
    const run = unit.repeat(Math.ceil(signs / unit.length)).slice(0, signs - 2)
    return [`${run}  `.slice(0, signs), `a${run}b`]
  })

/** The most harmless text of this many characters. */
export const harmlessText = (signs: number): string => 'a'.repeat(signs)
