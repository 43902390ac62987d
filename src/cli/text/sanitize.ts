const escape = '\u001b'

/**
 * Control sequences: CSI, the string kinds (OSC, DCS, SOS, PM, APC) with their terminator, two-byte escapes, and their
 * eight-bit forms. Built from text so that the source holds no control character.
 */
const sequences = new RegExp(
  [
    `(?:${escape}\\[|\\u009b)[0-?]*[ -/]*[@-~]?`,
    `(?:${escape}[\\]PX^_]|[\\u009d\\u0090\\u0098\\u009e\\u009f])[^\\u0007\\u001b\\u009c\\n]*(?:\\u0007|${escape}\\\\|\\u009c)?`,
    `${escape}[ -/]*[0-~]?`,
  ].join('|'),
  'g',
)
const unfinished = new RegExp(`${escape}(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\\u0007\\u001b]*|[ -/]*)$`)
/** All of Cc but tab and line feed; as plain ranges, for `\p{Cc}` is slower by far and every byte of output is looked at. */
const cc = `${range(0, 0x08)}${range(0x0b, 0x1f)}${range(0x7f, 0x9f)}`
/** Marks that turn the direction of what follows, other hosts' names and our own words included (U+202A…, U+2066…). */
const bidi = `${range(0x202a, 0x202e)}${range(0x2066, 0x2069)}`
const controls = new RegExp(`[${cc}${bidi}]`, 'g')

/** The styles of `paint` (screen.ts): they command nothing. */
const styles = new RegExp(`(${escape}\\[(?:[12]|22|3[1-3]|39)m)`)

/** Control characters that JSON leaves unescaped: DEL, C1, and bidi marks (U+202A…, U+2066…). */
const obeyed = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

function range(from: number, to: number): string {
  return `${String.fromCharCode(from)}-${String.fromCharCode(to)}`
}

/**
 * Text of a host without control sequences (contract §9): it can neither move the cursor, nor forge another host's line, nor
 * turn a line around.
 */
export function sanitize(text: string): string {
  // Almost every line is clean: one scan instead of a rewrite.
  return text.search(controls) === -1 ? text : text.replace(sequences, '').replace(controls, '')
}

/** As `sanitize`, for text that rsm itself has painted. */
export function sanitizePainted(text: string): string {
  if (text.search(controls) === -1) return text
  return text
    .split(styles)
    .map((piece, at) => (at % 2 === 1 ? piece : sanitize(piece)))
    .join('')
}

/** One line: line breaks become spaces, so that data can't fake a second row. */
export function sanitizeLine(text: string): string {
  return sanitize(text.replace(/[\r\n\t]+/g, ' '))
}

/** The text without a control sequence at its end whose rest is still to come. */
export function wholeSequences(text: string): string {
  return text.replace(unfinished, '')
}

/** JSON for programs, which may yet be read on a terminal. Parses to the same data. */
export function jsonText(data: unknown, indent?: number): string {
  return JSON.stringify(data, undefined, indent).replace(obeyed, unicodeEscape)
}

const unicodeEscape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A word as a shell takes it for one, quoted where it has to be: for lines that people copy. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
