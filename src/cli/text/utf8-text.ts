import { isUtf8 } from 'node:buffer'
import { RsmError } from '../../core/errors.ts'

/** The number of the first line that is not UTF-8, counted from 1. */
function badLine(bytes: Buffer): number {
  let line = 1
  for (let from = 0; from < bytes.length; line++) {
    const end = bytes.indexOf(10, from)
    const to = end < 0 ? bytes.length : end + 1
    if (!isUtf8(bytes.subarray(from, to))) return line
    from = to
  }
  return line
}

function isUtf16(bytes: Buffer): boolean {
  const mark = bytes.toString('hex', 0, 2)
  return mark === 'fffe' || mark === 'feff'
}

/** Decodes bytes. Errors: `usage` if they are not UTF-8, because replacement characters would change what the user meant. */
export function utf8Text(bytes: Buffer, what: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw new RsmError('usage', `${what} is not UTF-8: see line ${badLine(bytes)}`, {
    hint: `convert it first, as with iconv -f ${isUtf16(bytes) ? 'UTF-16' : 'ISO-8859-1'} -t UTF-8 FILE`,
  })
}
