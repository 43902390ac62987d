/** What a reader may go over again for each sign of a long text: separators, blanks, openings without an end, words of our syntaxes. */
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

/** Texts of this many signs that are nothing but one unit, alone and between two letters. */
export const hostileTexts = (signs: number): string[] =>
  units.flatMap((unit) => {
    const run = unit.repeat(Math.ceil(signs / unit.length)).slice(0, signs - 2)
    return [`${run}  `.slice(0, signs), `a${run}b`]
  })

/** As harmless as a text of this many signs can be. */
export const harmlessText = (signs: number): string => 'a'.repeat(signs)
