const escape = '\u001b'

/**
 * Control sequences: CSI, string types (OSC, DCS, SOS, PM, APC), two-byte escapes, and 8-bit forms. Built
 * from text, so that the source contains no control character.
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
/** Cc except tab and line feed; as ranges, because `\p{Cc}` is much slower and all output is scanned. */
const cc = `${range(0, 0x08)}${range(0x0b, 0x1f)}${range(0x7f, 0x9f)}`
/** Marks that reverse following text, even other hosts' names and our words (U+202A…, U+2066…). */
const bidi = `${range(0x202a, 0x202e)}${range(0x2066, 0x2069)}`
const controls = new RegExp(`[${cc}${bidi}]`, 'g')

/** The styles of `paint` (screen.ts), which are harmless. */
const styles = new RegExp(`(${escape}\\[(?:[12]|22|3[1-3]|39)m)`)

/** Start of a workflow command (`defuse`). */
const opening = /^[^\p{L}\p{N}_]*?::/u

/** Control characters that JSON leaves unescaped: DEL, C1, and bidi marks (U+202A…, U+2066…). */
const obeyed = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

function range(from: number, to: number): string {
  return `${String.fromCharCode(from)}-${String.fromCharCode(to)}`
}

/**
 * Removes control sequences (contract §9), so that a host cannot move the cursor, forge another's line, or
 * reverse one.
 */
export function sanitize(text: string): string {
  // Almost every line is clean: one scan instead of a rewrite.
  return text.search(controls) === -1 ? text : text.replace(sequences, '').replace(controls, '')
}

/** As `sanitize`, for text painted by rsm itself. */
export function sanitizePainted(text: string): string {
  if (text.search(controls) === -1) return text
  return text
    .split(styles)
    .map((piece, at) => (at % 2 === 1 ? piece : sanitize(piece)))
    .join('')
}

/** One line: line breaks become spaces, so that data cannot fake another row. */
export function sanitizeLine(text: string): string {
  return sanitize(text.replace(/[\r\n\t]+/g, ' '))
}

/** Cuts off an incomplete control sequence. */
export function wholeSequences(text: string): string {
  return text.replace(unfinished, '')
}

/** JSON for programs that is also safe on a terminal. Parses to the same data. */
export function jsonText(data: unknown, indent?: number): string {
  return JSON.stringify(data, undefined, indent).replace(obeyed, unicodeEscape)
}

const unicodeEscape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Quotes a word for a shell if necessary, for lines that people copy. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** Escapes the text of a workflow command of GitHub Actions. */
export function commandData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

export function commandProperty(text: string): string {
  return commandData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

/**
 * Breaks workflow commands, which a runner of GitHub Actions executes, with a space. `::name key=value::text`
 * counts at the start of a line, after any white space; `##[name]` anywhere in it (actions/runner,
 * ActionCommand.cs). Runners' white space never includes letters, digits or `_`, so only a `::` that none of
 * these precedes is broken; one within a line, as in an address, is not.
 */
export function defuse(text: string): string {
  if (!text.includes('::') && !text.includes('##[')) return text
  return text
    .split('\n')
    .map((line) => line.replace(opening, (start) => `${start.slice(0, -1)} :`).replaceAll('##[', '## ['))
    .join('\n')
}
