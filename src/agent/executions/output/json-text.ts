import { isUtf8 } from 'node:buffer'

/** Character after the backslash for each byte that JSON must escape, 0 for all others (RFC 8259 §7). */
const escapes = new Uint8Array(256)
const unicode = 'u'.charCodeAt(0)
escapes.fill(unicode, 0, 0x20)
for (const [byte, letter] of [
  ['\b', 'b'],
  ['\t', 't'],
  ['\n', 'n'],
  ['\f', 'f'],
  ['\r', 'r'],
  ['"', '"'],
  ['\\', '\\'],
] as const)
  escapes[byte.charCodeAt(0)] = letter.charCodeAt(0)

const backslash = 0x5c
const quote = 0x22
const hex = Buffer.from('0123456789abcdef')
/** A control character takes six bytes in JSON: `\u0000`. */
const longestEscape = 6

/** Reused: valid until the next call. */
let scratch = Buffer.alloc(0)

function escapeInto(target: Uint8Array, bytes: Uint8Array, start: number): number {
  let to = start
  let from = 0
  const { length } = bytes
  while (from < length) {
    const first = bytes[from] as number
    // Four at a time while none needs an escape, the usual case.
    if (from + 3 < length) {
      const second = bytes[from + 1] as number
      const third = bytes[from + 2] as number
      const fourth = bytes[from + 3] as number
      const any =
        (escapes[first] as number) |
        (escapes[second] as number) |
        (escapes[third] as number) |
        (escapes[fourth] as number)
      if (any === 0) {
        target[to] = first
        target[to + 1] = second
        target[to + 2] = third
        target[to + 3] = fourth
        to += 4
        from += 4
        continue
      }
    }
    from += 1
    const letter = escapes[first] as number
    if (letter === 0) target[to++] = first
    else {
      target[to++] = backslash
      target[to++] = letter
      if (letter !== unicode) continue
      target[to++] = hex[0] as number
      target[to++] = hex[0] as number
      target[to++] = hex[first >> 4] as number
      target[to++] = hex[first & 15] as number
    }
  }
  return to
}

/**
 * Head, bytes as a JSON string, tail: like `JSON.stringify(bytes.toString('utf8'))` in UTF-8, at a third of
 * the cost. Valid until the next call.
 */
export function jsonText(head: string, bytes: Buffer, tail: string): Buffer {
  if (!isUtf8(bytes)) return Buffer.from(head + JSON.stringify(bytes.toString('utf8')) + tail)
  const most = head.length * 3 + bytes.length * longestEscape + tail.length * 3 + 2
  if (scratch.length < most) scratch = Buffer.allocUnsafeSlow(most)
  let end = scratch.write(head)
  scratch[end++] = quote
  end = escapeInto(scratch, bytes, end)
  scratch[end++] = quote
  end += scratch.write(tail, end)
  return scratch.subarray(0, end)
}
