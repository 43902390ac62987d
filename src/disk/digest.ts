import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { crc32 } from 'node:zlib'

/** SHA-256 of the concatenated pieces (strings as UTF-8), hex. */
export function sha256(...pieces: (string | Uint8Array)[]): string {
  const [only] = pieces
  if (only !== undefined && pieces.length === 1) return hash('sha256', only, 'hex')
  const whole = createHash('sha256')
  for (const piece of pieces) whole.update(piece)
  return whole.digest('hex')
}

/** SHA-256 of a file of any size, hex. */
export async function sha256OfFile(path: string): Promise<string> {
  const whole = createHash('sha256')
  await pipeline(createReadStream(path), whole)
  return whole.digest('hex')
}

const beginText = ',"check":"'
const begin = Buffer.from(beginText)
const digits = 8
export const checkFieldBytes = begin.length + digits + 2
const quote = 0x22
const closingBrace = 0x7d

const hexOfBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Converts byte by byte: `toString(16)` of a number above 31 bits takes longer than the rest of a line. */
function hex(check: number): string {
  const bytes = [check >>> 24, (check >>> 16) & 255, (check >>> 8) & 255, check & 255] as const
  return `${hexOfBytes[bytes[0]]}${hexOfBytes[bytes[1]]}${hexOfBytes[bytes[2]]}${hexOfBytes[bytes[3]]}`
}

/** End of a JSON object with a check as its last field; `check` is the CRC-32 of the text before it. */
export function checkField(check: number): string {
  return `${beginText}${hex(check)}"}`
}

/** Adds a check to the JSON of a non-empty object; readers that do not know checks read it as before. */
export function checkedJson(json: string): string {
  const body = json.slice(0, -1)
  return body + checkField(crc32(body))
}

/** Whether the JSON has a check. Text of 0.1.0 has none, so its absence proves nothing. */
export function hasCheck(json: Buffer): boolean {
  const start = json.length - checkFieldBytes
  if (start <= 0 || json[json.length - 1] !== closingBrace || json[json.length - 2] !== quote) return false
  for (let at = 0; at < begin.length; at++) if (json[start + at] !== begin[at]) return false
  return true
}

/** Parses eight lower-case hexadecimal digits; NaN for anything else. */
function checkAt(json: Buffer, start: number): number {
  let check = 0
  for (let at = start; at < start + digits; at++) {
    const byte = json[at] ?? 0
    const digit =
      byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : Number.NaN
    check = check * 16 + digit
  }
  return check
}

/** Whether the JSON matches its check, or has none. */
export function fitsCheck(json: Buffer): boolean {
  const at = json.length - checkFieldBytes
  return !hasCheck(json) || checkAt(json, at + begin.length) === crc32(json.subarray(0, at))
}

/** Removes the check from the JSON, in place; null if the check does not match. */
export function withoutCheck(json: Buffer): Buffer | null {
  if (!hasCheck(json)) return json
  if (!fitsCheck(json)) return null
  const at = json.length - checkFieldBytes
  json[at] = closingBrace
  return json.subarray(0, at + 1)
}
