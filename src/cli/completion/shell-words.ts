export type Quote = '' | "'" | '"'

/** A command line up to the cursor, read as a shell does, but with nothing expanded. */
export interface ShellLine {
  /** Before the one under the cursor, quotes taken off. */
  readonly words: readonly string[]
  readonly current: string
  readonly raw: string
  readonly quote: Quote
  /** The shell puts something else in its place, like `$HOME`: what, is not known here. */
  readonly isExpanded: boolean
  /** The word is what a `<` or `>` reads or writes. */
  readonly isRedirection: boolean
}

/** Reads a line of bash, zsh or fish as far as the cursor; what stands before a `;`, `|` or `&` is another command. */
export function readShellLine(line: string): ShellLine {
  let words: string[] = []
  let start = 0
  let current = ''
  let quote: Quote = ''
  let isExpanded = false
  let isRedirection = false
  const end = (at: number) => {
    if (at > start && !isRedirection) words.push(current)
    if (at > start) isRedirection = false
    current = ''
    isExpanded = false
    start = at + 1
  }
  for (let at = 0; at < line.length; at++) {
    const sign = line.charAt(at)
    if (quote === "'") {
      if (sign === "'") quote = ''
      else current += sign
    } else if (sign === '\\' && (quote === '' || '$`"\\\n'.includes(line.charAt(at + 1)))) {
      current += line.charAt(++at)
    } else if (quote === '"') {
      if (sign === '"') quote = ''
      else {
        current += sign
        if (sign === '$' || sign === '`') isExpanded = true
      }
    } else if (sign === "'" || sign === '"') quote = sign
    else if (/\s/.test(sign)) end(at)
    else if (sign === '<' || sign === '>') {
      // The number of what is redirected: `2>`.
      if (/^\d+$/.test(line.slice(start, at))) start = at
      end(at)
      isRedirection = true
    } else if (sign === '&' && isRedirection && at === start) start = at + 1
    else if (';|&'.includes(sign)) {
      end(at)
      words = []
    } else {
      current += sign
      if (sign === '$' || sign === '`') isExpanded = true
    }
  }
  return { words, current, raw: line.slice(start), quote, isExpanded, isRedirection }
}

const plain = /^[\p{L}\p{N}_@%+=:,./-]$/u

/** Text as it has to be typed where this quote is open; undefined where it can't be. */
export function quoted(text: string, quote: Quote): string | undefined {
  if (quote === "'") return text.replaceAll("'", "'\\''")
  // A shell for people takes `!` for its history there, and a backslash before it stays.
  if (quote === '"') return text.includes('!') ? undefined : text.replace(/[$`"\\]/g, '\\$&')
  return Array.from(text, (sign) => (plain.test(sign) ? sign : `\\${sign}`)).join('')
}
