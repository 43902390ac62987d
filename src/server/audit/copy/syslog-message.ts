import { hostname } from 'node:os'
import { entryOf } from './head-of.ts'

/** The name under which collectors file it. */
export const syslogName = 'rsm-audit'

/** Facility authpriv, which collectors keep from other users; informational, or a warning for what was refused or failed (RFC 5424 §6.2.1). */
const authpriv = 10
const severities = { SUCCESS: 6, REFUSED: 4, FAILED: 4 } as const

/** Printable ASCII only, or the NILVALUE (RFC 5424 §6). */
function word(text: string, longest: number): string {
  return text.replaceAll(/[^\x21-\x7e]/g, '').slice(0, longest) || '-'
}

/** PRI of a line, `<86>`; a line that is no entry is a warning. */
export function priorityOf(line: Buffer): string {
  return `<${authpriv * 8 + (severities[entryOf(line)?.outcome ?? 'FAILED'] ?? 4)}>`
}

/** A line of the log as a message of RFC 5424: the entry's time, its action as MSGID, and the line as it is. */
export function syslogMessage(line: Buffer): Buffer {
  const entry = entryOf(line)
  const head = [
    `${priorityOf(line)}1`,
    word(entry?.at ?? '', 32),
    word(hostname(), 255),
    syslogName,
    String(process.pid),
    word(entry?.action ?? '', 32),
    '-',
  ].join(' ')
  return Buffer.concat([Buffer.from(`${head} `), line])
}
