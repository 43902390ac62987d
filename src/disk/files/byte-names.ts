/** Lone surrogates represent bytes that are not UTF-8: U+DC80 for 0x80, U+DCFF for 0xff (as PEP 383). */
const escapes = /[\udc80-\udcff]/gu
const isEscaped = /[\udc80-\udcff]/u

export function nameOf(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (Buffer.from(text).equals(bytes)) return text
  let name = ''
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] ?? 0
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    const character = bytes.subarray(at, at + length)
    const isText = Buffer.from(character.toString('utf8')).equals(character)
    name += isText ? character.toString('utf8') : String.fromCharCode(0xdc00 + lead)
    at += isText ? length : 1
  }
  return name
}

const isEscape = (part: string) => isEscaped.test(part)
export const bytesOfName = (name: string): Buffer =>
  Buffer.concat(
    name
      .split(/([\udc80-\udcff])/u)
      .map((part) => (isEscape(part) ? Buffer.of(part.charCodeAt(0) - 0xdc00) : Buffer.from(part))),
  )

export const systemPath = (path: string): string | Buffer => (isEscape(path) ? bytesOfName(path) : path)

/** Names for messages, with `\xe9` for a byte that is not UTF-8. */
export const shownNames = (text: string): string =>
  text.replace(escapes, (escape) => `\\x${(escape.charCodeAt(0) - 0xdc00).toString(16)}`)
