import { crc32 } from 'node:zlib'

const begin = Buffer.from(',"check":"')
const end = Buffer.from('"}')
const digits = 8
const length = begin.length + digits + end.length
const closingBrace = 0x7d

function hex(check: number): string {
  return check.toString(16).padStart(digits, '0')
}

/** What ends the JSON of an object whose text before its last brace has this CRC-32: its last field is the check of all others. */
export function checkField(check: number): string {
  return `${begin.toString()}${hex(check)}"}`
}

/** The JSON of an object that is not empty, and its check in it: whoever knows of none reads it as before. */
export function checkedJson(json: string): string {
  const body = json.slice(0, -1)
  return body + checkField(crc32(body))
}

/** Whether JSON that was read has a check. Text of 0.1.0 has none: then it proves nothing. */
export function hasCheck(json: Buffer): boolean {
  const at = json.length - length
  return (
    at > 0 &&
    json.compare(begin, 0, begin.length, at, at + begin.length) === 0 &&
    json.compare(end, 0, end.length, json.length - end.length) === 0
  )
}

/** JSON as it was before it had its check, in the same memory; null where it is not what was written. */
export function withoutCheck(json: Buffer): Buffer | null {
  if (!hasCheck(json)) return json
  const at = json.length - length
  const check = json.toString('latin1', at + begin.length, at + begin.length + digits)
  if (check !== hex(crc32(json.subarray(0, at)))) return null
  json[at] = closingBrace
  return json.subarray(0, at + 1)
}
