/** Control characters that JSON leaves unescaped: DEL, C1, and bidi marks (U+202A…, U+2066…). */
const obeyed = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** JSON for programs, which may yet be read on a terminal. Parses to the same data. */
export function jsonText(data: unknown, indent?: number): string {
  return JSON.stringify(data, undefined, indent).replace(obeyed, escaped)
}
